package slurm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pitchpipe/test/e2e/table"
)

// againEpochs are those of a job that returns: there is nothing to be probed.
const againEpochs = 10

// table tunes job files in each mode: what is met for the first time is probed, and
// what is known is changed while it waits. One job runs at a time, on one node.
func (s *stage) table(deployments ...deployment) {
	var rows []table.Row
	type pair struct {
		deployment
		file shipped
	}
	var pairs []pair
	for i, f := range slices.Backward(shippedFiles()) { // the first last, when the other stories have let go of the node
		for _, h := range deployments {
			if f.tuned > 0 && slices.Contains(f.modes, h.mode) && (i == 0 || *all) {
				pairs = append(pairs, pair{h, f})
			}
		}
	}
	for _, p := range pairs {
		s.t.Run(p.mode+" "+p.file.name, func(t *testing.T) {
			p.file.need(t)
			rows = append(rows, s.in(t).tune(p.deployment, p.file))
		})
	}
	s.w.table = table.Print(rows)
	for _, r := range rows {
		for what, run := range map[string]table.Run{"untuned": r.Untuned, "first": r.First, "tuned": r.Tuned} {
			if run.Lost > 0 || run.Twice > 0 || run.State != "succeeded" || run.Restarts+run.Probes != run.Attempts-1 {
				s.t.Errorf("%s, %s, %s (job %s): %s, %d epochs lost, %d twice, %d attempts, %d restarts and %d probes", r.Mode, r.Kind, what, run.ID, run.State, run.Lost, run.Twice, run.Attempts, run.Restarts, run.Probes)
			}
		}
		if r.Untuned.Attempts != 1 || !r.Untuned.Current.Equal(r.Untuned.Own) {
			s.t.Errorf("%s, %s: the untuned job was touched: %d attempts under %v", r.Mode, r.Kind, r.Untuned.Attempts, r.Untuned.Current)
		}
	}
}

func (s *stage) tune(h deployment, f shipped) table.Row {
	s.t.Helper()
	user := h.user
	on := []string{"--partition=" + h.partition, "--nodelist=" + s.node(1)}
	send := func(epochs int, args ...string) submission {
		s.t.Helper()
		sub := s.send(f, user, []string{fmt.Sprintf("EPOCHS=%d", epochs)}, append(on, args...)...)
		s.follow(h, sub)
		return sub
	}
	r := table.Row{Mode: h.mode, Kind: f.name, Epochs: againEpochs}
	// Its owner wants this one untuned, and says so while it waits, before anything is
	// known of its kind.
	untuned := send(againEpochs, "--hold")
	s.await("the controller to see a job that waits", func() error { _, err := h.client.Job(s.t.Context(), untuned.id); return err })
	s.as(user, s.w.path("pitchpipe"), "off", "--socket", h.socket, untuned.id)
	first := send(f.tuned)
	r.First = s.result(h, first, f.tuned)
	s.as(user, "scontrol", "release", untuned.id)
	// This one waits for its end, and is changed meanwhile.
	tuned := send(againEpochs, "--dependency=afterany:"+untuned.id)
	r.Untuned = s.result(h, untuned, againEpochs)
	r.Tuned = s.result(h, tuned, againEpochs)
	return r
}

// result waits for a job, and for the controller to be through with it.
func (s *stage) result(h deployment, sub submission, epochs int) table.Run {
	s.t.Helper()
	s.succeeded(sub)
	var r table.Run
	s.await("the controller to be through with "+sub.name, func() (err error) {
		if r.Job, err = h.client.Job(s.t.Context(), sub.id); err == nil && !r.Ended {
			err = fmt.Errorf("phase %s", r.Phase)
		}
		return err
	})
	r.Lost, r.Twice = table.LostAndTwice(s.read(sub.user, sub.id+".out"), epochs, s.discards(h, sub.id))
	n, err := strconv.Atoi(s.record(sub.id)["Restarts"])
	r.Attempts = n + 1
	began, _, _ := strings.Cut(s.read(sub.user, sub.id+".began"), "\n")
	from, err2 := strconv.ParseFloat(began, 64)
	last, err3 := os.Stat(filepath.Join(s.c.Home(sub.user), sub.id+".out"))
	if err := errors.Join(err, err2, err3); err != nil {
		s.t.Fatal(err)
	}
	r.Seconds = float64(last.ModTime().UnixNano())/1e9 - from
	return r
}
