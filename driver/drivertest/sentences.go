package drivertest

import (
	"slices"
)

// Settings of the suite's jobs: short enough for real processes, long enough for
// the suite to act while an epoch runs.
const (
	mebibyte = 1 << 20
)

func sentences() []sentence {
	return slices.Concat(startSentences(), endSentences(), advanceSentences(), viewSentences())
}

func needsMemory(h Harness) string {
	if !h.Driver.Capabilities().Memory {
		return "the driver enforces no memory limits"
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
