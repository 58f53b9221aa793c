package drivertest

import (
	"slices"
	"strings"
	"time"
)

const mebibyte = 1 << 20

// Lengths of the suite's jobs. A job that the suite acts on while it runs has
// several seconds left to run then: on a busy machine the suite is late.
const (
	epoch  = 300 * time.Millisecond
	long   = 30       // epochs
	longer = 2 * long // where the suite acts several times, or on what the job says
)

func sentences() []sentence {
	return slices.Concat(startSentences(), endSentences(), advanceSentences(), discardSentences(), crashSentences(), roomSentences(), viewSentences(), adviceSentences())
}

// lacks is why a sentence does not apply to a driver, or empty. It needs each of the words
// in what, which commas separate.
func (h *Harness) lacks(what string) string {
	can := h.Driver.Capabilities()
	for _, need := range []struct {
		what string
		has  bool
		why  string
	}{
		{"memory", can.Memory, "the driver enforces no memory limits"},
		{"memory return", can.MemoryReturns, "an attempt that was killed for memory has ended here"},
		{"settings return", can.MemoryReturns && !h.MemoryAlone, "at most less memory is taken back here"},
		{"live", can.Live, "a restart carries no settings file here"},
		{"no live", !can.Live, "a restart carries a settings file here"},
		{"env", can.Env, "a restart carries no environment variables here"},
		{"hold", h.Begin == nil, "the scheduler starts each job at once"},
		{"reopen", h.Reopen != nil, "the driver has no state to open again"},
		{"size", h.Cores > 0, "how large the largest job may be is unknown"},
		{"advice", h.takesAdvice(), "the scheduler takes no advice"},
		{"room", h.Cores > 1 && h.MemoryBytes > 0, "the machine is too small, or its size is unknown"},
	} {
		if slices.Contains(strings.Split(what, ", "), need.what) && !need.has {
			return need.why
		}
	}
	return ""
}
