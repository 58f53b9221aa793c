package reconcile

import (
	"slices"

	"pitchpipe/controller/tuning"
)

// alike are the epochs that can be compared with the latest: those that ran on machines
// of its kind. Where the kind is not known nothing is left out.
func alike(epochs []tuning.Epoch) []tuning.Epoch {
	kind := kindOf(epochs)
	other := func(e tuning.Epoch) bool { return e.Machine != "" && e.Machine != kind }
	if kind == "" || !slices.ContainsFunc(epochs, other) {
		return epochs
	}
	return slices.DeleteFunc(slices.Clone(epochs), other)
}

// kindOf is the kind of machine that the latest epoch ran on; empty = not known.
func kindOf(epochs []tuning.Epoch) string {
	for _, e := range slices.Backward(epochs) {
		if e.Machine != "" {
			return e.Machine
		}
	}
	return ""
}

// elsewhere reports whether the owner's own settings were measured, and on machines of
// another kind than that which the job runs on now: nothing here can be held against
// them, so that nothing is decided.
func (p *reconciliation) elsewhere() bool {
	own := func(e tuning.Epoch) bool { return !e.Warmup && e.Settings.Equal(p.rec.Own) }
	return slices.ContainsFunc(p.rec.Epochs, own) && !slices.ContainsFunc(alike(p.rec.Epochs), own)
}
