package executor

import (
	"strings"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// maxText bounds a report's sentence, in bytes.
const maxText = 4 << 10

// report begins a report about an attempt.
func (att *attempt) report(outcome apiv1.Outcome, text string) *apiv1.Report {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return &apiv1.Report{Task: att.ref.wire(), Outcome: outcome, Text: strings.ToValidUTF8(text, "?")}
}

func (o order) outcome() apiv1.Outcome {
	if o.how == cancel {
		return apiv1.Outcome_OUTCOME_KILLED
	}
	return apiv1.Outcome_OUTCOME_RETURNED
}

func (o order) text() string {
	switch {
	case o.reason != "":
		return "ended: " + o.reason
	case o.how == cancel:
		return "ended because the daemon asked for it"
	default:
		return "given up because the executor ends"
	}
}
