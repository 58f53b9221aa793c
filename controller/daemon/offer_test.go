package daemon_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// atOnce is a cluster that starts jobs at once: they are scripts of a user alice.
type atOnce struct {
	driver.Driver
	refuse bool
}

func (d *atOnce) Foresee(script []byte) (driver.Job, error) {
	return driver.Job{
		ID: "sim-9", Name: "train", Owner: "alice", State: driver.Pending, Filename: "job.sbatch", Source: script, Fingerprint: "f",
		Resources: driver.Resources{Cores: 1, MemoryBytes: 1 << 30, Command: "c"},
	}, nil
}

func (d *atOnce) MayBegin(context.Context, []byte, driver.Change) error {
	if d.refuse {
		return driver.ErrUnsupported
	}
	return nil
}

func TestAUserWhoSubmitsGetsTheSettingsThatHisJobMayBeginWith(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	store, err := knowledge.Open(filepath.Join(state, "knowledge.db"), knowledge.Options{})
	if err != nil {
		t.Fatal(err)
	}
	earlier := knowledge.Observation{
		ID: "1", Job: "1", Kind: tuning.JobKind{Owner: "alice", Name: "train", Fingerprint: "c"}, At: time.Now(), Peak: 64 << 20,
	}
	err = store.Update(func(tx *knowledge.Tx) error { _, err := tx.Put(earlier); return err })
	if cerr := store.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	cluster := &atOnce{}
	c := daemontest.New(t, daemontest.Options{
		State: state, Site: "default:\n  max_mode: apply\n  control: 0\n",
		Driver: func(d driver.Driver) driver.Driver { cluster.Driver = d; return cluster },
	})
	memory := "#TUNE knob memory min=16MiB max=1GiB"
	script := string(daemontest.Script("train", 5, 1, "#TUNE mode=apply", memory))
	ask := func(name, script string) (int, api.HeadStart) {
		t.Helper()
		w := as(t, c, peer.Peer{UID: 4242, Name: name}, "POST", "/v1/headstarts", script)
		var h api.HeadStart
		if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		return w.Code, h
	}
	code, h := ask("alice", script)
	if code != http.StatusOK || h.Intent == "" || h.Change.MemoryBytes != 192<<20 || h.Reason != tuning.ReasonRightSized || h.Sentence == "" {
		t.Errorf("alice gets %d %+v, want three times the peak of 64 MiB", code, h)
	}
	if _, again := ask("alice", script); again.Intent == h.Intent {
		t.Error("two that ask are told the same intent")
	}
	tunable := string(daemontest.Script("train", 5, 1, append(daemontest.Tuned("apply"), memory)...))
	if code, h := ask("alice", tunable); code != http.StatusOK || h.Intent != "" {
		t.Errorf("of a job that can be tuned as it runs, and of whose kind nothing but the memory is known, she gets %d %+v", code, h)
	}
	if code, h := ask("bob", script); code != http.StatusForbidden || h.Intent != "" {
		t.Errorf("bob gets %d %+v of alice's jobs", code, h)
	}
	if code, h := ask("alice", "#!/bin/sh\nexec ./train\n"); code != http.StatusOK || h.Intent != "" {
		t.Errorf("of a job without a stanza she gets %d %+v", code, h)
	}
	cluster.refuse = true
	if code, h := ask("alice", script); code != http.StatusOK || h.Intent != "" {
		t.Errorf("of what its scheduler refuses she gets %d %+v", code, h)
	}
	if w := as(t, c, peer.Peer{Name: "root"}, "POST", "/v1/pauses", `{"scope":"cluster"}`); w.Code != http.StatusNoContent {
		t.Fatal(w.Body)
	}
	cluster.refuse = false
	if code, h := ask("alice", script); code != http.StatusOK || h.Intent != "" {
		t.Errorf("while the tuner is paused she gets %d %+v", code, h)
	}
	if jobs, err := c.Cluster.List(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("asking left jobs: %+v (%v)", jobs, err)
	}
}

// Where a scheduler makes its jobs wait there is nothing to ask before.
func TestASchedulerThatHasJobsWaitOffersNothingBefore(t *testing.T) {
	t.Parallel()
	c := daemontest.New(t, daemontest.Options{})
	w := as(t, c, peer.Peer{UID: 4242, Name: "alice"}, "POST", "/v1/headstarts", "{}")
	var h api.HeadStart
	if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil || w.Code != http.StatusOK || h.Intent != "" {
		t.Errorf("%d %s (%v)", w.Code, w.Body, err)
	}
}
