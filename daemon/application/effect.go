package application

import (
	"time"

	"github.com/retinue-sched/retinue/daemon/allocator"
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
)

// Effect is what an application asks for. The set is closed: the types of this file.
type Effect interface{ effect() }

// What the actuator carries out.
type (
	// CreatePod asks for an executor's pod. Asked again for the same executor it means the same pod.
	CreatePod struct {
		Executor             snapshot.ID
		Profile              snapshot.Profile
		Name                 string
		Zone, Capacity, Node string // hints, possibly empty
		Reason               string
	}
	// DeletePod asks for a pod to go.
	DeletePod struct {
		Executor snapshot.ID
		Name     string
		UID      string           // precondition; empty: the creation was never answered
		Version  snapshot.Version // precondition for executors that were not running; 0: none
		Grace    time.Duration    // between asking and forcing; negative: as the pod says
		Why      DeleteReason
		Text     string
	}
)

// DeleteReason is why a pod is deleted.
type DeleteReason uint8

// The reasons.
const (
	DeleteReleased DeleteReason = 1 // a policy or a person let it go
	DeleteTimedOut DeleteReason = 2 // nobody saw it in time
	DeleteEnded    DeleteReason = 3 // it has ended; the object is cleaned up
	DeleteStopped  DeleteReason = 4 // the application stops
	DeleteSurplus  DeleteReason = 5 // it is not wanted and never was (of another life of the application, a late creation)
	DeleteOrphaned DeleteReason = 6 // its application is unknown, and has been for long
)

// What the driver sends to executors. Messages of superseded sessions are dropped there.
type (
	// Admit accepts a session: from now on it is the executor's only one.
	Admit struct {
		Executor snapshot.ID
		Session  uint64
		Discard  []task.Ref // attempts it holds that are not wanted any more: end them, report nothing
	}
	// Refuse rejects a session for good; the executor ends.
	Refuse struct {
		Executor snapshot.ID
		Session  uint64
		Text     string
	}
	// LaunchTasks starts attempts.
	LaunchTasks struct {
		Executor snapshot.ID
		Session  uint64
		Launches []task.Launch
	}
	// KillTasks ends attempts.
	KillTasks struct {
		Executor snapshot.ID
		Session  uint64
		Tasks    []task.Ref
		Text     string
	}
	// AckReports says that the ends of attempts are recorded (or not wanted): the executor may forget them.
	AckReports struct {
		Executor snapshot.ID
		Session  uint64
		Tasks    []task.Ref
	}
	// DrainExecutor tells an executor to take no new work.
	DrainExecutor struct {
		Executor snapshot.ID
		Session  uint64
		Text     string
	}
	// StopExecutor tells an executor to end now.
	StopExecutor struct {
		Executor snapshot.ID
		Session  uint64
		Text     string
	}
	// EndSession cuts a session off without ending the executor.
	EndSession struct {
		Executor snapshot.ID
		Session  uint64
		Text     string
	}
)

// What clients get.
type (
	// Reply answers a client's event.
	Reply struct {
		Request uint64
		Refused Refusal // zero: done
		Tasks   []task.Info
		More    bool   // ListTasks: there are more after the last
		Count   uint32 // Cancel: how many tasks were ended or told to end
	}
	// TasksChanged is what became of tasks, for one watch.
	TasksChanged struct {
		Watch uint64
		Tasks []task.Info
	}
)

// Refusal is why a client's wish was not done.
type Refusal struct {
	Code RefusalCode
	Text string
}

// RefusalCode is the kind of a Refusal.
type RefusalCode uint8

// The codes.
const (
	RefusedBadRequest RefusalCode = 1
	RefusedNotFound   RefusalCode = 2
	RefusedFull       RefusalCode = 3 // try later
	RefusedStopped    RefusalCode = 4
	RefusedConflict   RefusalCode = 5
)

// The rest.
type (
	// AskPolicy asks for one decision. Input does not change; the answer is Decided with the same Number.
	AskPolicy struct {
		Number  uint64
		Input   *allocator.Input
		Builtin bool // the bound policy did not answer in time: ask the built-in one
	}
	// SetTimer asks for TimerFired at a moment. A later SetTimer of the same Timer replaces it; At 0 cancels.
	SetTimer struct {
		Timer Timer
		At    snapshot.Instant
	}
	// Notice is something that people want to know of: a log record, and later an Event on the application.
	Notice struct {
		Kind     NoticeKind
		Executor snapshot.ID // 0: the application as a whole
		Text     string
	}
	// Ended says that a stopped application has nothing left: no task is live, and no executor is there or being deleted. It is given once, and
	// never while executors are kept.
	Ended struct{}
)

// Timer names a timer of an application.
type Timer uint8

// The timers.
const (
	TimerAsk      Timer = 1 // the next question to the policy is due
	TimerDecision Timer = 2 // the policy has not answered
	TimerCreation Timer = 3 // the oldest unseen request times out
	TimerSessions Timer = 4 // a session may be lost, or a re-attachment overdue
	TimerDynamic  Timer = 5 // dynamic allocation looks at the backlog
	TimerTasks    Timer = 6 // the next deadline of a task
	TimerRetry    Timer = 7 // a deletion is tried again, a back-off ends
)

// NoticeKind is a stable reason in CamelCase.
type NoticeKind string

// The kinds.
const (
	NoticeExecutorEnded      NoticeKind = "ExecutorEnded"
	NoticeExecutorLost       NoticeKind = "ExecutorLost"
	NoticeCreateRefused      NoticeKind = "CreateRefused"
	NoticeCreationTimeout    NoticeKind = "CreationTimeout"
	NoticeRegistrationMissed NoticeKind = "RegistrationRefused"
	NoticePolicyFault        NoticeKind = "PolicyFault"
	NoticePolicyOverruled    NoticeKind = "PolicyOverruled"
	NoticePolicyBound        NoticeKind = "PolicyBound"
	NoticeBackoff            NoticeKind = "BackingOff"
	NoticeCannotDelete       NoticeKind = "CannotDelete"
	NoticeTargetChanged      NoticeKind = "TargetChanged"
	NoticeForeignPods        NoticeKind = "ForeignPods"
)

func (CreatePod) effect()     {}
func (DeletePod) effect()     {}
func (Admit) effect()         {}
func (Refuse) effect()        {}
func (LaunchTasks) effect()   {}
func (KillTasks) effect()     {}
func (AckReports) effect()    {}
func (DrainExecutor) effect() {}
func (StopExecutor) effect()  {}
func (EndSession) effect()    {}
func (Reply) effect()         {}
func (TasksChanged) effect()  {}
func (AskPolicy) effect()     {}
func (SetTimer) effect()      {}
func (Notice) effect()        {}
func (Ended) effect()         {}
