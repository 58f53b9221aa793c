package broker

import (
	"fmt"
	"slices"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker/ledger"
	"pitchpipe/driver/slurm/slurmctl"
)

// Knob is what a stanza allows of an amount: Values, or where there are none what lies
// from Min to Max. The zero Knob allows nothing.
type Knob struct {
	Values   []int64
	Min, Max int64 // both ends are allowed
}

// Allows reports whether the owner's stanza permits the amount.
func (k Knob) Allows(n int64) bool {
	if len(k.Values) > 0 {
		return slices.Contains(k.Values, n)
	}
	return k.Max > 0 && k.Min <= n && n <= k.Max
}

// within refuses a size that neither the stanza allows nor the job's owner asked for. An
// amount that is no knob may only go back. Too little time would end a job for good, so that
// it is never less than he asked for.
func (e *effect) within(u slurmctl.Update, after ledger.Size) error {
	asked := e.record.Asked
	if after != asked && after != e.job.size && slurmctl.Says(e.job.Comment, slurmctl.Off) {
		return errOff
	}
	if u.Cores != nil && after.Cores != asked.Cores && !e.stanza.Cores.Allows(int64(after.Cores)) {
		return fmt.Errorf("its stanza does not allow %d cores, and its owner asked for %d: %w", after.Cores, asked.Cores, driver.ErrDenied)
	}
	// Memory by CPU changes with the cores.
	least, want := asked.Memory.Of(asked.Cores), after.Memory.Of(after.Cores)
	if (u.Memory != nil || u.Cores != nil) && want != least {
		switch {
		case least == 0:
			return fmt.Errorf("its owner asked for %s: %w", memoryText(asked.Memory), driver.ErrDenied)
		case !e.stanza.Memory.Allows(want):
			return fmt.Errorf("its stanza does not allow %d MiB of memory, and its owner asked for %d: %w", want>>20, least>>20, driver.ErrDenied)
		}
	}
	if u.TimeLimit != nil && asked.TimeLimit != 0 && longer(asked.TimeLimit, after.TimeLimit) {
		return fmt.Errorf("a time limit of %v is less than the %v that its owner asked for: %w", after.TimeLimit, asked.TimeLimit, driver.ErrDenied)
	}
	return nil
}
