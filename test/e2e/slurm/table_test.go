package slurm_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"pitchpipe/controller/daemon/api"
)

// row is one job file in one mode: how it went untuned and, when it returned, tuned.
// Both did the same work.
type row struct {
	mode, kind string
	epochs     int
	untuned    run
	first      run // of more epochs: it is probed
	tuned      run
}

// run is one job that has ended.
type run struct {
	api.Job

	seconds     float64 // from the begin of its first attempt to its last word
	attempts    int     // as Slurm counts them
	lost, twice int     // epochs
}

// againEpochs are those of a job that returns: there is nothing to be probed.
const againEpochs = 10

// table tunes job files in each mode: what is met for the first time is probed, and
// what is known is changed while it waits. One job runs at a time, on one node.
func (s *stage) table(houses ...house) {
	var rows []row
	for _, h := range houses {
		for _, f := range shippedFiles() {
			if f.tuned == 0 || !slices.Contains(f.modes, h.mode) {
				continue
			}
			s.t.Run(h.mode+" "+f.name, func(t *testing.T) {
				f.need(t)
				rows = append(rows, s.in(t).tune(h, f))
			})
		}
	}
	s.w.table = printed(rows)
	for _, r := range rows {
		for what, run := range map[string]run{"untuned": r.untuned, "first": r.first, "tuned": r.tuned} {
			if run.lost > 0 || run.twice > 0 || run.State != "succeeded" || run.Restarts+run.Probes != run.attempts-1 {
				s.t.Errorf("%s, %s, %s (job %s): %s, %d epochs lost, %d twice, %d attempts, %d restarts and %d probes", r.mode, r.kind, what, run.ID, run.State, run.lost, run.twice, run.attempts, run.Restarts, run.Probes)
			}
		}
		if r.untuned.attempts != 1 || !r.untuned.Current.Equal(r.untuned.Own) {
			s.t.Errorf("%s, %s: the untuned job was touched: %d attempts under %v", r.mode, r.kind, r.untuned.attempts, r.untuned.Current)
		}
	}
}

func (s *stage) tune(h house, f shipped) row {
	s.t.Helper()
	user := h.user
	on := []string{"--partition=" + h.partition, "--nodelist=" + s.node(1)}
	send := func(epochs int, args ...string) submission {
		s.t.Helper()
		sub := s.send(f, user, []string{fmt.Sprintf("EPOCHS=%d", epochs)}, append(on, args...)...)
		s.follow(h, sub)
		return sub
	}
	r := row{mode: h.mode, kind: f.name, epochs: againEpochs}
	// Its owner wants this one untuned, and says so while it waits, before anything is
	// known of its kind.
	untuned := send(againEpochs, "--hold")
	s.await("the controller to see a job that waits", func() error { _, err := h.client.Job(s.t.Context(), untuned.id); return err })
	s.as(user, s.w.path("pitchpipe"), "off", "--socket", h.socket, untuned.id)
	first := send(f.tuned)
	r.first = s.result(h, first, f.tuned)
	s.as(user, "scontrol", "release", untuned.id)
	// This one waits for its end, and is changed meanwhile.
	tuned := send(againEpochs, "--dependency=afterany:"+untuned.id)
	r.untuned = s.result(h, untuned, againEpochs)
	r.tuned = s.result(h, tuned, againEpochs)
	return r
}

// result waits for a job, and for the controller to be through with it.
func (s *stage) result(h house, sub submission, epochs int) run {
	s.t.Helper()
	s.succeeded(sub)
	var r run
	s.await("the controller to be through with "+sub.name, func() (err error) {
		if r.Job, err = h.client.Job(s.t.Context(), sub.id); err == nil && !r.Ended {
			err = fmt.Errorf("phase %s", r.Phase)
		}
		return err
	})
	r.lost, r.twice = lostAndTwice(s.read(sub.user, sub.id+".out"), epochs)
	n, err := strconv.Atoi(s.record(sub.id)["Restarts"])
	r.attempts = n + 1
	began, _, _ := strings.Cut(s.read(sub.user, sub.id+".began"), "\n")
	from, err2 := strconv.ParseFloat(began, 64)
	last, err3 := os.Stat(filepath.Join(s.c.Home(sub.user), sub.id+".out"))
	if err := errors.Join(err, err2, err3); err != nil {
		s.t.Fatal(err)
	}
	r.seconds = float64(last.ModTime().UnixNano())/1e9 - from
	return r
}

// printed is the table, as the demo prints its own.
func printed(rows []row) string {
	var b strings.Builder // to which no writing fails
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "MODE\tJOB\tSECONDS untuned → tuned\tRATIO\tEPOCHS\tJOULES (source)\tSETTINGS user → tuned\tFIRST ENCOUNTER\tATTEMPTS\tRECALLED\tLOST\tTWICE\tREASON first → returned")
	sum, n, lost, twice := 0.0, 0, 0, 0
	for _, r := range rows {
		ratio := r.tuned.seconds / r.untuned.seconds
		if !r.tuned.Current.Equal(r.tuned.Own) { // of others the ratio is the machine's
			sum, n = sum+math.Log(ratio), n+1
		}
		l, w := r.untuned.lost+r.first.lost+r.tuned.lost, r.untuned.twice+r.first.twice+r.tuned.twice
		lost, twice = lost+l, twice+w
		_, _ = fmt.Fprintf(t, "%s\t%s\t%.1f → %.1f\t%.2f\t%d\t%s → %s (%s)\t%s → %s\t%.1f s, %d epochs, %d attempts\t%d\t%v\t%d\t%d\t%s → %s\n", r.mode, r.kind,
			r.untuned.seconds, r.tuned.seconds, ratio, r.epochs, joules(r.untuned), joules(r.tuned), r.tuned.Source, r.untuned.Own, r.tuned.Current,
			r.first.seconds, r.first.Epoch, r.first.attempts, r.tuned.attempts, r.tuned.Recalled, l, w, r.first.Reason, r.tuned.Reason)
	}
	_ = t.Flush()
	fmt.Fprintf(&b, "\n%d of %d jobs that returned were changed. Lost %d, done twice %d.\n", n, len(rows), lost, twice)
	if n > 0 {
		fmt.Fprintf(&b, "Those that were changed took %.2f of their untuned time (geometric mean, restarts included).\n", math.Exp(sum/float64(n)))
	}
	b.WriteString("One run each, on a machine that does other things too. Joules that are modelled are an estimate and support no claim.\n")
	return b.String()
}

func joules(r run) string {
	if r.Joules == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f", *r.Joules)
}
