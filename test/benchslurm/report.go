package benchslurm

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"pitchpipe/test/measure"
	"pitchpipe/test/slurmcluster"
)

// Report is what was measured.
type Report struct {
	Machine   measure.Machine
	Version   string // of Slurm
	Rest      bool   // slurmrestd is asked in place of sdiag
	Jobs      int
	Filled    time.Duration // that it took to submit them
	Alone     Cost          // slurmctld before the controller was there, nothing happens
	AloneBusy Cost          // the same while others submit a job every second
	Arrived   Cost          // the controller from its start until it only watches
	Quiet     Cost          // nothing happens
	Busy      Cost          // others submit a job every second
	SeenQuiet []time.Duration
	SeenBusy  []time.Duration // both sorted

	Controller, Broker, Slurmctld measure.Use
	Largest                       int64 // peak bytes of the controller, or of the largest of its children
}

func version(ctx context.Context, c *slurmcluster.Cluster) string {
	out, err := c.Run(ctx, "root", "squeue", "--version")
	if err != nil {
		return "unknown"
	}
	return out
}

// Print writes the report as tables.
func (r Report) Print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // Flush tells
	line("%s, %d cores of %s, Linux %s, %s", r.Version, r.Machine.Cores, r.Machine.CPU, r.Machine.Kernel, r.Machine.GoVersion)
	line("load average before %s, after %s", r.Machine.Load, r.Machine.LoadAfter)
	line("%d queued jobs of two users, one in %d with a stanza, submitted at %.0f a second", r.Jobs, share, float64(r.Jobs)/r.Filled.Seconds())
	line("")
	if r.Rest {
		line("slurmrestd is asked in place of sdiag, and is counted as one of ours")
	} else {
		line("sdiag is asked: there is no slurmrestd here")
	}
	line("")
	line("CPU\tcontroller and broker with their children\t\tof it children\tslurmctld\t\tover")
	cost := func(name string, c Cost, ours bool) {
		mine := "-\t\t"
		if ours {
			mine = perMinute(c, c.Controller) + fmt.Sprintf("\t%.2f %%", c.Share(c.Children))
		}
		line("%s\t%s\t%s\t%v", name, mine, perMinute(c, c.Slurmctld), c.Over.Round(time.Second))
	}
	cost("nothing happens", r.Quiet, true)
	cost("others submit 1 a second", r.Busy, true)
	cost("nothing happens, no controller", r.Alone, false)
	cost("others submit 1 a second, no controller", r.AloneBusy, false)
	line("start of the two\t%.2f s in all\t\t%.2f s\t\t\t%v", r.Arrived.Controller.Seconds(), r.Arrived.Children.Seconds(), r.Arrived.Over.Round(time.Second))
	line("")
	line("memory\tnow\tpeak")
	line("controller\t%d MiB\t%d MiB", r.Controller.RSS>>20, r.Controller.Peak>>20)
	line("broker\t%d MiB\t%d MiB", r.Broker.RSS>>20, r.Broker.Peak>>20)
	line("the larger of the controller and its children\t\t%d MiB", r.Largest>>20)
	line("slurmctld\t%d MiB\t%d MiB", r.Slurmctld.RSS>>20, r.Slurmctld.Peak>>20)
	line("")
	line("from sbatch to seen\tjobs\tmedian\t95 %%\tlongest")
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{{"nothing else happens", r.SeenQuiet}, {"others submit 1 a second", r.SeenBusy}} {
		line("%s\t%d\t%s\t%s\t%s", row.name, len(row.times), seconds(row.times, 0.5), seconds(row.times, 0.95), seconds(row.times, 1))
	}
	line("")
	line("asked for: at most %v to seen and at most %d %% of a core; found: %.2f s and %.2f %%", askedSeen, askedShare,
		max(measure.Quantile(r.SeenQuiet, 1), measure.Quantile(r.SeenBusy, 1)).Seconds(), max(r.Quiet.Share(r.Quiet.Controller), r.Busy.Share(r.Busy.Controller)))
	return w.Flush()
}

// What is asked for, of 10,000 jobs.
const (
	askedSeen  = 2 * time.Second
	askedShare = 3
)

func perMinute(c Cost, cpu time.Duration) string {
	return fmt.Sprintf("%.2f s/min\t%.2f %% of a core", cpu.Seconds()*60/c.Over.Seconds(), c.Share(cpu))
}

func seconds(times []time.Duration, part float64) string {
	return fmt.Sprintf("%.2f s", measure.Quantile(times, part).Seconds())
}
