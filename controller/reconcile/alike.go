package reconcile

import (
	"slices"

	"pitchpipe/controller/tuning"
)

// alike returns the epochs that can be compared with the latest one: those on machines of
// its kind. If the kind is unknown, it returns all.
func alike(epochs []tuning.Epoch) []tuning.Epoch {
	kind := kindOf(epochs)
	other := func(e tuning.Epoch) bool { return e.Machine != "" && e.Machine != kind }
	if kind == "" || !slices.ContainsFunc(epochs, other) {
		return epochs
	}
	return slices.DeleteFunc(slices.Clone(epochs), other)
}

// kindOf is the kind of machine of the latest epoch; empty = unknown.
func kindOf(epochs []tuning.Epoch) string {
	for _, e := range slices.Backward(epochs) {
		if e.Machine != "" {
			return e.Machine
		}
	}
	return ""
}

// elsewhere reports whether the owner's settings were measured only on machines of another
// kind than the present one. Then no comparison is possible, and nothing is decided.
func (p *reconciliation) elsewhere() bool {
	own := func(e tuning.Epoch) bool { return !e.Warmup && e.Settings.Equal(p.rec.Own) }
	return slices.ContainsFunc(p.rec.Epochs, own) && !slices.ContainsFunc(alike(p.rec.Epochs), own)
}
