package daemon_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/sim"
)

// searched is a search of 6 trials of 9 short epochs.
func searched() []byte {
	return daemontest.Script("train", 9, 0.03,
		"#TUNE mode=observe", "#TUNE search trials=6 parallel=2 seed=3", "#TUNE knob lr env=LR min=0.001 max=1 scale=log",
		`#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'`, "#TUNE progress total=9")
}

// until asks for a search until it is as wanted.
func until(t *testing.T, c *daemontest.Controller, id string, wanted func(trials.State) bool) trials.State {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		x, err := c.Client.SearchState(t.Context(), id)
		if err == nil && wanted(x) {
			return x
		}
		if time.Now().After(deadline) {
			t.Fatalf("the search did not become what was wanted: %v %+v", err, x)
		}
	}
}

func TestASearchGoesOnInTheNextController(t *testing.T) {
	t.Parallel()
	cluster, err := sim.New(sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	o := daemontest.Options{State: filepath.Join(t.TempDir(), "state"), Cluster: cluster, JobLabels: true, Site: "default: {enforce_model: true}\n"}
	c := daemontest.Start(t, o)
	submission := api.Submission{Request: "s1", Filename: "train.sbatch", Source: searched(), Dir: t.TempDir()}
	begun, err := c.Client.Search(t.Context(), submission)
	if err != nil {
		t.Fatal(err)
	}
	before := until(t, c, "s1", func(x trials.State) bool { return len(x.Trials) > 2 && len(x.Trials[0].Reports) > 0 })
	c.Stop(t)

	c = daemontest.New(t, o) // who asks before the searches go on finds them
	if w := as(t, c, peer.Peer{}, "GET", "/v1/searches/s1", ""); w.Code != http.StatusOK {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	c.Stop(t)

	o.Site = "" // the search goes on as it began
	c = daemontest.Start(t, o)
	if again, err := c.Client.Search(t.Context(), submission); err != nil || !again.Created.Equal(begun.Created) {
		t.Errorf("the same request began %v (%v), want %v", again.Created, err, begun.Created)
	}
	x := until(t, c, "s1", func(x trials.State) bool { return x.Over })
	if len(x.Trials) != 6 || !x.Plan.EnforceModel || x.Closing != "" || x.Ended.IsZero() || string(x.Job.Source) != string(searched()) {
		t.Errorf("%d trials, closing %q, ended %v: want 6 and no reason", len(x.Trials), x.Closing, x.Ended)
	}
	if a, b := before.Trials[0].Reports[0], x.Trials[0].Reports[0]; a.Seq != b.Seq || a.Value != b.Value {
		t.Errorf("the first report was %+v and is %+v", a, b)
	}
	jobs, err := cluster.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown, err := c.Client.Jobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range shown {
		if j.State == "cancelled" && !strings.HasPrefix(j.Sentence, "it was cancelled by its search: ") {
			t.Errorf("%s was cancelled, since %s", j.ID, j.Sentence)
		}
	}
	had := tuning.Sum(x.Trials, func(t trials.Trial) int { return len(t.Jobs) })
	if had != len(jobs) {
		t.Errorf("the cluster had %d jobs, and the trials have %d", len(jobs), had)
	}

	w := httptest.NewRecorder()
	c.Daemon.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	for _, want := range []string{
		`pitchpipe_searches{state="over"} 1`, `pitchpipe_searches{state="running"} 0`, `pitchpipe_search_trials{state="running"} 0`,
		`pitchpipe_search_best{name="train",search="s1",user="` + x.Owner + `"} `, `pitchpipe_search_joules{source="`, `pitchpipe_search_seconds_count{work="decision"} `,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the metrics lack %s in\n%s", want, w.Body)
		}
	}
	if v, err := c.Client.Validate(t.Context(), api.Draft{Filename: "train.sbatch", Source: searched()}); err != nil || v.Epoch == nil || v.Epoch.Joules == nil || !v.Epoch.Unenforced {
		t.Errorf("what an epoch took: %+v (%v), want joules, which enforce no budget of a new search", v.Epoch, err)
	}
	if len(x.Searcher().Ranking()) == 0 || x.Trials[0].State == searcher.Running {
		t.Errorf("trials: %+v", x.Trials)
	}
}

func TestTheIDOfASearchIsNoPath(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	for _, id := range []string{"../s1", "a/b", "a.b", "ä"} {
		if _, err := c.Client.Search(t.Context(), api.Submission{Request: id, Filename: "train.sbatch", Source: searched()}); err == nil || !strings.Contains(err.Error(), "want letters") {
			t.Errorf("%s: %v, want an error that says what is allowed", id, err)
		}
	}
}
