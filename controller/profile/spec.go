package profile

import "pitchpipe/controller/tuning"

// Spec is what the caller knows about an attempt and its window does not say.
// Its zero value is usable: what is 0 or empty is unknown or the default.
type Spec struct {
	WarmupEpochs int             // first epochs of each attempt that are not judged; the very first never is
	Epochs       int             // epochs that make a profile; 0 = tuning.DefaultEpochs
	Total        int             // epochs of the whole job; 0 = only the marks say it, if at all
	Settings     tuning.Settings // what the attempt runs under
	Machine      string          // api.Node.MachineKind
	NodeCores    int             // api.Node.Cores; 0 = pollution by others cannot be judged
	Still        []tuning.Span   // in which the scheduler had it stand still
}

func (s Spec) warmup() int { return max(1, s.WarmupEpochs) }

func (s Spec) wanted() int {
	if s.Epochs > 0 {
		return s.Epochs
	}
	return tuning.DefaultEpochs
}

// shape are the settings that profiles must share to be compared.
func shape(s tuning.Settings) tuning.Settings {
	return s.Only(func(name string) bool { return name == tuning.Cores || name == tuning.Threads })
}
