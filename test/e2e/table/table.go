package table

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"pitchpipe/controller/daemon/api"
)

// Row is one job file in one mode: how it went untuned and, when it returned, tuned.
// Both did the same work.
type Row struct {
	Mode, Kind string
	Epochs     int
	Untuned    Run
	First      Run // of more epochs: it is probed
	Tuned      Run
}

// Run is one job that has ended.
type Run struct {
	api.Job

	Seconds     float64 // from the begin of its first attempt to its last word
	Attempts    int     // as the scheduler counts them
	Lost, Twice int     // epochs
}

// Print is the table, as the demo prints its own.
func Print(rows []Row) string {
	var b strings.Builder // to which no writing fails
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "MODE\tJOB\tSECONDS untuned → tuned\tRATIO\tEPOCHS\tJOULES (source)\tSETTINGS user → tuned\tFIRST ENCOUNTER\tATTEMPTS\tRECALLED\tLOST\tTWICE\tREASON first → returned")
	sum, n, lost, twice := 0.0, 0, 0, 0
	for _, r := range rows {
		ratio := r.Tuned.Seconds / r.Untuned.Seconds
		if !r.Tuned.Current.Equal(r.Tuned.Own) { // of others the ratio is the machine's
			sum, n = sum+math.Log(ratio), n+1
		}
		l, w := r.Untuned.Lost+r.First.Lost+r.Tuned.Lost, r.Untuned.Twice+r.First.Twice+r.Tuned.Twice
		lost, twice = lost+l, twice+w
		_, _ = fmt.Fprintf(t, "%s\t%s\t%.1f → %.1f\t%.2f\t%d\t%s → %s (%s)\t%s → %s\t%.1f s, %d epochs, %d attempts\t%d\t%v\t%d\t%d\t%s → %s\n", r.Mode, r.Kind,
			r.Untuned.Seconds, r.Tuned.Seconds, ratio, r.Epochs, joules(r.Untuned), joules(r.Tuned), r.Tuned.Source, r.Untuned.Own, r.Tuned.Current,
			r.First.Seconds, r.First.Epoch, r.First.Attempts, r.Tuned.Attempts, r.Tuned.Recalled, l, w, r.First.Reason, r.Tuned.Reason)
	}
	_ = t.Flush()
	fmt.Fprintf(&b, "\n%d of %d jobs that returned were changed. Lost %d, done twice %d.\n", n, len(rows), lost, twice)
	if n > 0 {
		fmt.Fprintf(&b, "Those that were changed took %.2f of their untuned time (geometric mean, restarts included).\n", math.Exp(sum/float64(n)))
	}
	b.WriteString("One run each, on a machine that does other things too. Joules that are modelled are an estimate and support no claim.\n")
	return b.String()
}

func joules(r Run) string {
	if r.Joules == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f", *r.Joules)
}

// LostAndTwice counts the epochs that are missing in an output, and those that were
// done again more often than the job was discarded.
func LostAndTwice(output string, epochs, discards int) (lost, twice int) {
	for e := 1; e <= epochs; e++ {
		n := strings.Count("\n"+output, fmt.Sprintf("\nepoch %d/%d ", e, epochs))
		if n == 0 {
			lost++
		}
		twice += max(0, n-1-discards)
	}
	return lost, twice
}

// Discards counts the attempts that a job's story says were thrown away: what those did
// since their last checkpoint is done again.
func Discards(s api.Story) (n int) {
	for _, l := range s.Lines {
		if l.Decision != nil && l.Decision.Discard {
			n++
		}
	}
	return n
}

// InOrder reports whether the epochs that a job did are each of 1 to total: in order and
// once, or again after one of its discards.
func InOrder(did []string, total, discards int) bool {
	last := 0
	for _, word := range did {
		n, err := strconv.Atoi(word)
		if n <= last {
			discards--
		}
		if err != nil || n < 1 || n > last+1 || discards < 0 {
			return false
		}
		last = n
	}
	return last == total
}
