package benchslurm

import "time"

// Cost is what watching cost over a time.
type Cost struct {
	Over       time.Duration
	Controller time.Duration // CPU, of the controller and the broker with their children
	Children   time.Duration // CPU of those alone: squeue and the like
	Slurmctld  time.Duration // CPU
}

// Share is a part of one core, in percent.
func (c Cost) Share(cpu time.Duration) float64 {
	return 100 * cpu.Seconds() / c.Over.Seconds()
}
