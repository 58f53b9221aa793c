package benchnomad

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"pitchpipe/test/measure"
)

// Cost is what watching cost over a time.
type Cost struct {
	Over     time.Duration
	CPU      time.Duration // of the controller
	Requests int64         // that it made
	Bytes    int64         // of the answers
}

// Share is a part of one core, in percent.
func (c Cost) Share() float64 { return 100 * c.CPU.Seconds() / c.Over.Seconds() }

// Report is what was measured.
type Report struct {
	Machine       measure.Machine
	Nomad         string
	Jobs, Stanzas int
	Filled        time.Duration // that it took to register them
	Arrived       Cost          // from the controller's start until it knows every job with a stanza
	Quiet, Busy   Cost
	SeenQuiet     []time.Duration
	SeenBusy      []time.Duration // both sorted
	Controller    measure.Use
}

// What is asked for, of 1,000 jobs of which 50 have a stanza.
const (
	askedSeen   = 2 * time.Second
	askedMemory = 64 // MB
)

// Print writes the report as tables.
func (r Report) Print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // Flush tells
	line("%s, %d cores of %s, Linux %s, %s", r.Nomad, r.Machine.Cores, r.Machine.CPU, r.Machine.Kernel, r.Machine.GoVersion)
	line("load average before %s, after %s", r.Machine.Load, r.Machine.LoadAfter)
	line("%d registered jobs, %d with a stanza, registered at %.0f a second", r.Jobs, r.Stanzas, float64(r.Jobs)/r.Filled.Seconds())
	line("")
	line("controller\tCPU\t\trequests a minute\tanswers\tover")
	for _, row := range []struct {
		name string
		Cost
	}{{"nothing happens", r.Quiet}, {"others register 1 a second", r.Busy}, {"its start", r.Arrived}} {
		minutes := row.Over.Minutes()
		line("%s\t%.2f s/min\t%.2f %% of a core\t%.0f\t%.1f KiB/min\t%v", row.name, row.CPU.Seconds()/minutes, row.Share(),
			float64(row.Requests)/minutes, float64(row.Bytes)/1024/minutes, row.Over.Round(time.Second/10))
	}
	line("")
	line("memory of the controller\t%d MiB\tpeak %d MiB", r.Controller.RSS>>20, r.Controller.Peak>>20)
	line("")
	line("from registration to seen\tjobs\tmedian\t95 %%\tlongest")
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{{"nothing else happens", r.SeenQuiet}, {"others register 1 a second", r.SeenBusy}} {
		line("%s\t%d\t%s\t%s\t%s", row.name, len(row.times), seconds(row.times, 0.5), seconds(row.times, 0.95), seconds(row.times, 1))
	}
	line("")
	line("asked for: at most %v to seen and under %d MB; found: %.2f s and %.0f MB at the peak", askedSeen, askedMemory,
		max(measure.Quantile(r.SeenQuiet, 1), measure.Quantile(r.SeenBusy, 1)).Seconds(), float64(r.Controller.Peak)/1e6)
	return w.Flush()
}

func seconds(times []time.Duration, part float64) string {
	return fmt.Sprintf("%.2f s", measure.Quantile(times, part).Seconds())
}
