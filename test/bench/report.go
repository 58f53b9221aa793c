package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"pitchpipe/test/measure"
)

// cost is what was used over a time.
type cost struct {
	over     time.Duration
	cpu      time.Duration // of our processes with their children
	children time.Duration // CPU of those alone: squeue and the like
	server   time.Duration // CPU of the scheduler
	requests int64         // that the controller made, where they are counted
	bytes    int64         // of the answers
}

func (c cost) minus(o cost, over time.Duration) cost {
	return cost{over, c.cpu - o.cpu, c.children - o.children, c.server - o.server, c.requests - o.requests, c.bytes - o.bytes}
}

// share is a part of one core, in percent.
func (c cost) share(cpu time.Duration) float64 { return 100 * cpu.Seconds() / c.over.Seconds() }

func (c cost) perMinute(cpu time.Duration) string {
	return fmt.Sprintf("%.2f s/min\t%.2f %% of a core", cpu.Seconds()/c.over.Minutes(), c.share(cpu))
}

type memory struct {
	name string
	measure.Use
}

// report is what was measured. Of a pair the first is quiet, and in the second others add a
// job every second.
type report struct {
	cluster

	machine       measure.Machine
	jobs, stanzas int
	filled        time.Duration      // that it took to fill the queue
	alone         [2]cost            // before the controller was there
	arrived       cost               // from the controller's start until it only watches
	ours          [2]cost            // with the controller
	seen          [2][]time.Duration // each sorted
	memory        []memory
	largest       int64 // peak bytes of the controller, or of the largest of its children
}

// slowest is the longest that a new job took to be seen.
func (r report) slowest() float64 {
	return max(measure.Quantile(r.seen[0], 1), measure.Quantile(r.seen[1], 1)).Seconds()
}

// print writes the report as tables.
func (r report) print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // Flush has the error
	line("%s, %s", r.name, r.machine.Heading())
	line("%d jobs, %d with a stanza, %.0f a second to %s", r.jobs, r.stanzas, float64(r.jobs)/r.filled.Seconds(), r.verb)
	line("")
	line("CPU\tours, with children\t\tof it children\tscheduler\t\trequests a minute\tanswers\tover")
	busy := "others " + r.verb + " 1 a second"
	for _, row := range []struct {
		name string
		cost
		ours bool
	}{
		{"nothing happens", r.ours[0], true},
		{busy, r.ours[1], true},
		{"nothing happens, no controller", r.alone[0], false},
		{busy + ", no controller", r.alone[1], false},
	} {
		if row.over == 0 {
			continue
		}
		mine, server, asked := "-\t\t", "-\t", "-\t"
		if row.ours {
			mine = row.perMinute(row.cpu) + fmt.Sprintf("\t%.2f %%", row.share(row.children))
			asked = fmt.Sprintf("%.0f\t%.1f KiB/min", float64(row.requests)/row.over.Minutes(), float64(row.bytes)/1024/row.over.Minutes())
		}
		if r.server != 0 {
			server = row.perMinute(row.server)
		}
		line("%s\t%s\t%s\t%s\t%v", row.name, mine, server, asked, row.over.Round(time.Second/10))
	}
	a := r.arrived
	line("its start\t%.2f s in all\t\t%.2f s\t\t\t%d in all\t%.1f KiB\t%v", a.cpu.Seconds(), a.children.Seconds(), a.requests, float64(a.bytes)/1024, a.over.Round(time.Second/10))
	line("")
	line("memory\tnow\tpeak")
	for _, m := range r.memory {
		line("%s\t%d MiB\t%d MiB", m.name, m.RSS>>20, m.Peak>>20)
	}
	line("the larger of the controller and its children\t\t%d MiB", r.largest>>20)
	line("")
	line("from %s to seen\tjobs\tmedian\t95 %%\tlongest", r.verb)
	for i, name := range [...]string{"nothing else happens", busy} {
		times := r.seen[i]
		seconds := func(part float64) string { return fmt.Sprintf("%.2f s", measure.Quantile(times, part).Seconds()) }
		line("%s\t%d\t%s\t%s\t%s", name, len(times), seconds(0.5), seconds(0.95), seconds(1))
	}
	line("")
	line("asked for: %s", r.asked(r))
	return w.Flush()
}
