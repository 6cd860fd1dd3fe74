package application

import (
	"github.com/retinue-sched/retinue/daemon/snapshot"
	"github.com/retinue-sched/retinue/daemon/task"
	"github.com/retinue-sched/retinue/hostabi"
)

// Event is what an application is told. The set is closed: the types of this file.
type Event interface{ event() }

// What the cluster says.
type (
	// PodObserved is one pod as a watch shows it. A deleted one has phase Deleted. It is this daemon's: others come as ForeignObserved.
	PodObserved struct{ Pod snapshot.Observation }
	// ForeignObserved is a pod that says that it is the application's and is not this daemon's, as a watch shows it.
	ForeignObserved struct {
		Pod  ForeignPod
		Gone bool
	}
	// PodsListed is a complete list of the application's pods at one version: this daemon's ascending by ID, others' by name.
	PodsListed struct {
		Version snapshot.Version
		Pods    []snapshot.Observation
		Foreign []ForeignPod
	}
	// PodCreated answers CreatePod: the pod is in the cluster (made now, or found to be ours).
	PodCreated struct {
		Executor snapshot.ID
		UID      string
		Version  snapshot.Version
	}
	// PodRefused answers CreatePod: the pod certainly does not exist.
	PodRefused struct {
		Executor snapshot.ID
		Class    RefusalClass
		Text     string
	}
	// PodDeleted answers DeletePod.
	PodDeleted struct {
		Executor snapshot.ID
		Name     string // of the pod; another life's may have the same number; empty: the executor's
		Outcome  DeleteOutcome
		Text     string
	}
)

// ForeignPod is a pod of another daemon, or of nobody that one could name.
type ForeignPod struct {
	Name  string
	Whose string // for people: "another daemon's"
}

// RefusalClass is why a pod was not created.
type RefusalClass uint8

// The classes.
const (
	RefusedInvalid   RefusalClass = 1 // the pod is not valid (422): the template must change
	RefusedQuota     RefusalClass = 2 // a quota is used up
	RefusedAdmission RefusalClass = 3 // an admission rule or webhook said no
	RefusedForbidden RefusalClass = 4 // the daemon lacks the right
	RefusedOther     RefusalClass = 5
	RefusedTaken     RefusalClass = 6 // a pod that is not ours has the name
)

// DeleteOutcome is what became of a deletion.
type DeleteOutcome uint8

// The outcomes. After Changed the executor is left as it is and decided on again; Unknown is tried again by the actuator first.
const (
	DeleteAccepted DeleteOutcome = 1 // the pod is going, or gone
	DeleteChanged  DeleteOutcome = 2 // a precondition did not hold: the pod is not what the decision saw
	DeleteFailed   DeleteOutcome = 3
)

// What executors say.
type (
	// Attached is an executor's request to be admitted on a new session, already authenticated as this executor. Sessions count upwards in the daemon's life.
	Attached struct {
		Executor snapshot.ID
		Session  uint64
		UID      string // of its pod, as far as it knows; may be empty
		Slots    uint32
		Holds    []task.Ref // attempts that it still runs or whose ends it has not had acknowledged
	}
	// Detached is the end of a session: the stream broke or was closed.
	Detached struct {
		Executor snapshot.ID
		Session  uint64
		Text     string
		Leaving  bool // the executor said that it leaves
	}
	// Beat is a sign of life.
	Beat struct {
		Executor snapshot.ID
		Session  uint64
		Memory   uint64 // bytes in use
		Disk     uint64 // bytes in use
	}
	// Reported is what became of attempts.
	Reported struct {
		Executor snapshot.ID
		Session  uint64
		Reports  []task.Report
	}
	// Leaving is an executor's wish to be drained (its pod got a termination signal).
	Leaving struct {
		Executor snapshot.ID
		Session  uint64
		Text     string
	}
)

// What clients ask for. Each is answered by a Reply with the same Request.
type (
	// Configure replaces the configuration. Identity, namespace and profile ids may not change.
	Configure struct {
		Request uint64
		Config  Config
	}
	// SetTargets sets how many executors are wanted. Profiles that are not named keep theirs.
	SetTargets struct {
		Request uint64
		Targets []snapshot.Target
	}
	// Submit brings tasks. It is accepted or refused whole.
	Submit struct {
		Request uint64
		Tasks   []*task.Spec
	}
	// Cancel ends tasks: those with the keys, or all of a job, or, if neither is given, all.
	Cancel struct {
		Request uint64
		Keys    []string
		Job     string
	}
	// ListTasks asks for tasks in order of acceptance, at most Limit after the given one. Job and States filter if set.
	ListTasks struct {
		Request uint64
		Job     string
		Keys    []string
		States  []task.State
		After   task.ID
		Limit   uint32
	}
	// WatchTasks begins a watch: its Reply lists the tasks that match now, TasksChanged effects follow.
	WatchTasks struct {
		Request uint64
		Watch   uint64
		Job     string
	}
	// UnwatchTasks ends a watch. It is not answered.
	UnwatchTasks struct{ Watch uint64 }
	// ReleaseExecutors lets executors go on a person's word: drained, or killed at once.
	ReleaseExecutors struct {
		Request   uint64
		Executors []snapshot.ID
		Kill      bool
		Text      string
	}
	// Stop ends the application's work: no task is accepted or assigned any more, and nothing is created. Executors are kept or deleted.
	Stop struct {
		Request       uint64
		KeepExecutors bool
	}
)

// What the policy answers, and what time does.
type (
	// Decided answers AskPolicy.
	Decided struct {
		Number   uint64
		Decision hostabi.Decision
		By       string // digest of the module, or "native:" and a name
		Policy   string // name of the policy
		Fault    string // the module did not answer properly and the built-in policy did; empty if all is well
	}
	// PolicyBound says that another policy generation answers from now on.
	PolicyBound struct {
		Policy string
		By     string
		Mode   Mode // 0: unchanged
	}
	// TimerFired says that a timer asked for by SetTimer is due. One that fires early or twice does no harm.
	TimerFired struct{ Timer Timer }
)

func (PodObserved) event()      {}
func (ForeignObserved) event()  {}
func (PodsListed) event()       {}
func (PodCreated) event()       {}
func (PodRefused) event()       {}
func (PodDeleted) event()       {}
func (Attached) event()         {}
func (Detached) event()         {}
func (Beat) event()             {}
func (Reported) event()         {}
func (Leaving) event()          {}
func (Configure) event()        {}
func (SetTargets) event()       {}
func (Submit) event()           {}
func (Cancel) event()           {}
func (ListTasks) event()        {}
func (WatchTasks) event()       {}
func (UnwatchTasks) event()     {}
func (ReleaseExecutors) event() {}
func (Stop) event()             {}
func (Decided) event()          {}
func (PolicyBound) event()      {}
func (TimerFired) event()       {}
