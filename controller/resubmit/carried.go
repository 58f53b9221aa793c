package resubmit

import (
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// Carried is the policy without the knobs that a scheduler of these capabilities
// cannot bring to a job in every way that the stanza names, and their names. A knob
// that follows one of those stays where it can be brought itself. Memory is only
// touched where too little of it can be made good.
func Carried(p tuning.Policy, c driver.Capabilities) (carried tuning.Policy, left []string) {
	carried = p
	carried.Knobs = nil
	for _, k := range p.Knobs {
		if k.Env != "" && !c.Env || k.Arg != "" && !c.Args || k.Live && !c.Live || k.Name == tuning.Memory && !c.MemoryReturns {
			left = append(left, k.Name)
			continue
		}
		carried.Knobs = append(carried.Knobs, k)
	}
	return carried, left
}
