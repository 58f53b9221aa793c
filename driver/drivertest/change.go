package drivertest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
)

// settingsFile is what a job finds in the file of PITCHPIPE_SETTINGS.
type settingsFile struct {
	Revision int            `json:"revision"`
	Settings map[string]any `json:"settings"`
}

// settings reads what each attempt of the job wrote of its settings file, nil for
// one that has none.
func (h *Harness) settings(t *testing.T, id driver.JobID) []*settingsFile {
	t.Helper()
	var out []*settingsFile
	for l := range strings.Lines(h.logs(t, id, 0)) {
		text, ok := strings.CutPrefix(strings.TrimSpace(l), "settings ")
		switch {
		case !ok:
		case text == "none":
			out = append(out, nil)
		default:
			f := &settingsFile{}
			if err := json.Unmarshal([]byte(text), f); err != nil {
				t.Fatalf("settings file of %s: %q: %v", id, text, err)
			}
			out = append(out, f)
		}
	}
	return out
}

func changeLive(t *testing.T, h *Harness) {
	b := mover(longer)
	b.ShowSettings = true
	live := map[string]string{"rate": "0.25", "mode": "fast"}
	job := h.changes(t, b, driver.Change{TimeLimit: time.Hour, Live: live}, driver.Change{})
	if got := job.Attempts[1].Change.Live; len(got) != 2 || got["rate"] != "0.25" || got["mode"] != "fast" {
		t.Errorf("live change of the second attempt: %v, want %v", got, live)
	}
	got := h.settings(t, job.ID)
	if len(got) != 3 {
		t.Fatalf("%d attempts wrote of their settings file, want 3", len(got))
	}
	if got[0] != nil {
		t.Errorf("settings of the first attempt: %+v, want none", got[0])
	}
	if f := got[1]; f == nil || len(f.Settings) != 2 || f.Settings["rate"] != 0.25 || f.Settings["mode"] != "fast" {
		t.Fatalf("settings of the second attempt: %+v, want a number and a word", f)
	}
	// The file stays where it was once named, so that a job may rely on it.
	if f := got[2]; f == nil || len(f.Settings) != 0 || f.Revision <= got[1].Revision || got[1].Revision < 1 {
		t.Errorf("settings of the third attempt: %+v, want none in a later revision than %d", f, got[1].Revision)
	}
}

// hungry is a job that needs more memory than its owner asked for.
func hungry() Behaviour {
	b := mover(10_000)
	b.MemoryBytes, b.UseMemory = 128*mebibyte, 400*mebibyte
	return b
}

// returns runs a hungry job under a change; left is what is left of it after each kill.
func returns(change driver.Change, left ...driver.Change) func(*testing.T, *Harness) {
	return func(t *testing.T, h *Harness) {
		job := h.startChanged(t, hungry(), change)
		h.wantReturns(t, job.ID, append([]driver.Change{change}, left...)...)
	}
}

// wantReturns waits until a job ends for lack of memory and compares what its
// attempts ran under: the change, and what was left of it after each kill.
func (h *Harness) wantReturns(t *testing.T, id driver.JobID, want ...driver.Change) {
	t.Helper()
	job := h.ended(t, id)
	wantState(t, job, driver.MemoryExceeded)
	wantAttempts(t, job, len(want))
	for i, a := range job.Attempts {
		cause, intent := driver.CauseMemory, ""
		if i == 0 {
			cause, intent = driver.CauseIntent, "intent"
		}
		same := a.Change.MemoryBytes == want[i].MemoryBytes && a.Change.TimeLimit == want[i].TimeLimit
		if !same || a.Cause != cause || a.Intent != intent {
			t.Errorf("attempt %+v, want change %+v, cause %s, intent %q", a, want[i], cause, intent)
		}
	}
}

func appliedBeforeReturn(t *testing.T, h *Harness) {
	job := h.startHeld(t, hungry())
	in := h.applied(t, job, "intent", driver.Change{TimeLimit: time.Hour})
	h.Eventually(t, "its owner's settings return", func(context.Context) bool {
		return slices.ContainsFunc(h.get(t, job.ID).Attempts, func(a driver.Attempt) bool { return a.Cause == driver.CauseMemory })
	})
	wantStep(t, h.advance(t, in), driver.StepStarted)
	wantState(t, h.ended(t, job.ID), driver.MemoryExceeded)
	wantStep(t, h.advance(t, in), driver.StepStarted)
}
