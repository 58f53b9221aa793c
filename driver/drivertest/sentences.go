package drivertest

import (
	"cmp"
	"slices"
	"time"
)

const mebibyte = 1 << 20

// Lengths of the suite's jobs. A job that the suite acts upon while it runs has
// several seconds left to run then: on a busy machine the suite is late.
const (
	epoch = 300 * time.Millisecond
	long  = 30 // epochs
)

func sentences() []sentence {
	return slices.Concat(startSentences(), endSentences(), advanceSentences(), discardSentences(), crashSentences(), roomSentences(), viewSentences())
}

func needsMemory(h Harness) string {
	if !h.Driver.Capabilities().Memory {
		return "the driver enforces no memory limits"
	}
	return ""
}

func needsHold(h Harness) string {
	if h.Begin != nil {
		return "the scheduler starts each job at once"
	}
	return ""
}

func needsHoldAndReopen(h Harness) string { return cmp.Or(needsHold(h), needsReopen(h)) }

func needsHoldAndSettingsReturn(h Harness) string {
	return cmp.Or(needsHold(h), needsSettingsReturn(h))
}

func needsMemoryReturn(h Harness) string {
	if !h.Driver.Capabilities().MemoryReturns {
		return "an attempt that was killed for memory has ended here"
	}
	return ""
}

func needsSettingsReturn(h Harness) string {
	if h.MemoryAlone {
		return "only less memory is taken back here"
	}
	return needsMemoryReturn(h)
}

func needsLive(h Harness) string {
	if !h.Driver.Capabilities().Live {
		return "a restart carries no settings file here"
	}
	return ""
}

func needsNoLive(h Harness) string {
	if h.Driver.Capabilities().Live {
		return "a restart carries a settings file here"
	}
	return ""
}

func needsEnv(h Harness) string {
	if !h.Driver.Capabilities().Env {
		return "a restart carries no environment variables here"
	}
	return ""
}

func needsReopen(h Harness) string {
	if h.Reopen == nil {
		return "the driver has no state of its own to be opened again"
	}
	return ""
}

func needsSize(h Harness) string {
	if h.Cores < 1 {
		return "nobody knows how large the largest job may be"
	}
	return ""
}
