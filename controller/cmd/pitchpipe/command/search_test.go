package command_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/trials"
	"pitchpipe/test/sim"
)

// searchFile is a search for the larger batch: four trials of four epochs.
func searchFile(t *testing.T, seconds float64, lines ...string) string {
	t.Helper()
	return jobFile(t, "train", 4, seconds, append([]string{
		"#SIM batch=BATCH quality=0.5 quality_per_doubling=0.1 tau=1 checkpoint=5ms show_env=BATCH",
		"#TUNE search method=grid trials=4 parallel=2 system=fixed epochs=4",
		"#TUNE knob batch env=BATCH values=16,32,64,128",
		`#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)'`,
		"#TUNE quality direction=max measures=quality,time",
		"#TUNE checkpoint signal=USR1 grace=60s exit=85",
	}, lines...)...)
}

func TestTheWayOfASearchThroughTheCommands(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{Sim: sim.Config{EnergySource: "rapl"}})
	at := func(args ...string) []string {
		return append(append([]string{"search"}, args...), "--socket", c.Config.Socket)
	}
	file := searchFile(t, 0.02)

	for _, cmd := range []string{"results", "best", "importance", "export", "stop", "resume"} {
		if r := pitchpipe(t, at(cmd)...); r.code != command.ExitNotFound || strings.Count(r.errors, "\n") != 1 || !strings.Contains(r.errors, "pitchpipe search run FILE") {
			t.Errorf("%s without a search: exit %d, %q; want %d and the next step", cmd, r.code, r.errors, command.ExitNotFound)
		}
	}
	if text := ok(t, at("status")...); !strings.Contains(text, "there is no search yet") {
		t.Errorf("no searches: %q", text)
	}
	if text := ok(t, at("preview", file)...); !strings.Contains(text, "4 trials by grid, 2 at one time") || !strings.Contains(text, "What an epoch takes is unknown") || strings.Contains(text, "warning") {
		t.Errorf("preview printed %q", text)
	}

	// With --wait it is followed to its end, and a repeated request is the same search.
	r := pitchpipe(t, at("run", file, "--wait", "--request", "s1")...)
	if !strings.HasPrefix(r.out, "search  s1 (train) is over: all 4 trials ended\nbest    quality 0.6") || !strings.Contains(r.out, "batch=128\nnext    pitchpipe search best s1 -o FILE") || !strings.HasPrefix(r.errors, "s1 runs: ") || len(slices.Compact(strings.Split(r.errors, "\n"))) <= strings.Count(r.errors, "\n") {
		t.Errorf("run --wait printed %q, %q", r.out, r.errors)
	}
	var again trials.State
	decoded(t, &again, at("run", file, "--request", "s1")...)
	if again.ID != "s1" || len(again.Trials) != 4 {
		t.Errorf("the same request once more: %+v", again)
	}

	var list []struct {
		trials.State
		Ends string `json:"expected_end"`
	}
	decoded(t, &list, at("status")...)
	if len(list) != 1 || list[0].ID != "s1" || !list[0].Settled() || list[0].Ends != "" {
		t.Errorf("status %+v", list)
	}
	if text := ok(t, at("status")...); !strings.HasPrefix(text, "SEARCH") || strings.Count(text, "\n") != 2 {
		t.Errorf("status printed %q", text)
	}
	if text := ok(t, at("status", "s1")...); !strings.HasPrefix(text, "search  s1") || strings.Count(text, "4/4") != 4 {
		t.Errorf("status of one printed %q", text)
	}
	if text := ok(t, at("status", "--watch")...); !strings.HasPrefix(text, "search  s1") {
		t.Errorf("status --watch of a search that is over: %q", text)
	}
	var results struct {
		Search string
		Over   bool
		Trials []struct {
			Rank     int
			Number   int
			Settings map[string]float64
		}
		Front struct{ By []string }
	}
	if text := ok(t, at("results", "--json")...); !strings.Contains(text, `"rank": 4`) || strings.Contains(text, `"rank": 5`) {
		t.Errorf("results --json printed %s", text)
	} else if err := json.Unmarshal([]byte(text), &results); err != nil || !results.Over || results.Trials[0].Settings["batch"] != 128 || len(results.Front.By) != 2 {
		t.Errorf("results %+v: %v", results, err)
	}
	if text := ok(t, at("results")...); !strings.Contains(text, "No other trial is better in all of these (quality, time)") {
		t.Errorf("results printed %q", text)
	}

	t.Run("the best trial runs as an ordinary job", func(t *testing.T) {
		t.Parallel()
		fixed := filepath.Join(t.TempDir(), "best.sbatch")
		if text := ok(t, at("best", "-o", fixed)...); !strings.Contains(text, "next    pitchpipe run "+fixed) || !strings.Contains(text, "(empty: the program keeps no checkpoint") || !strings.Contains(text, trials.Folder(filepath.Dir(file), "train", "s1", results.Trials[0].Number)) {
			t.Errorf("best printed %q", text)
		}
		id := strings.TrimSpace(ok(t, "run", fixed, "--socket", c.Config.Socket))
		if j := c.Until(t, id, daemontest.Ended); j.Search != "" || j.State != "succeeded" {
			t.Errorf("the job of the best trial: %+v", j)
		}
		if text := ok(t, "logs", id, "--socket", c.Config.Socket); !strings.Contains(text, "env BATCH=128") {
			t.Errorf("it wrote %q", text)
		}
		r := pitchpipe(t, at("best", "-o", fixed)...)
		if r.code != command.ExitInvalid || !strings.Contains(r.errors, "exists: name another file") {
			t.Errorf("a file that exists: exit %d, %q", r.code, r.errors)
		}
	})
	t.Run("pictures and tables are written", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		picture, table := filepath.Join(dir, "x.svg"), filepath.Join(dir, "x.csv")
		ok(t, at("plot", "rungs", "-o", picture)...)
		if svg, err := os.ReadFile(picture); err != nil || !strings.Contains(string(svg), "<svg") {
			t.Errorf("the picture: %v, %.80q", err, svg)
		}
		ok(t, at("export", "--epochs", "-o", table)...)
		text, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		if lines, err := csv.NewReader(strings.NewReader(string(text))).ReadAll(); err != nil || len(lines) != 1+4*4 {
			t.Errorf("the table has %d lines (%v)", len(lines), err)
		}
		if text := ok(t, at("export", "--format", "json")...); !strings.Contains(text, `"rungs"`) {
			t.Errorf("export as JSON: %.200q", text)
		}
		if text := ok(t, at("importance")...); !strings.Contains(text, "unknown") {
			t.Errorf("importance of four trials: %q", text)
		}
	})
	t.Run("its jobs say of which search they are", func(t *testing.T) {
		t.Parallel()
		socket := []string{"--socket", c.Config.Socket}
		job := string(list[0].Trials[2].Jobs[0])
		if text := ok(t, append(socket, "explain", job)...); !strings.Contains(text, "\nsearch   trial 3 of s1: pitchpipe search status s1\n") {
			t.Errorf("explain printed %q", text)
		}
		if text := ok(t, append(socket, "status", job)...); !strings.Contains(text, "train (s1, trial 3)") {
			t.Errorf("status printed %q", text)
		}
		text := ok(t, append(socket, "history")...)
		for _, want := range []string{"train (search s1)", "A search began: 4 trials by grid", "It ended after 4 trials; the best is 0.6", "train (s1, trial 3)"} {
			if !strings.Contains(text, want) {
				t.Errorf("the history lacks %q: %s", want, text)
			}
		}
	})
	t.Run("a search that is over", func(t *testing.T) {
		t.Parallel()
		for args, want := range map[string]struct {
			code int
			says string
		}{
			"resume":               {command.ExitInvalid, "all 4 trials of s1 ended; --trials N with a larger N adds some"},
			"stop":                 {command.ExitNotFound, "the newest, s1, is over: all 4 trials ended; stop takes one that runs"},
			"status s2":            {command.ExitNotFound, "search not found: s2; pitchpipe search status lists yours"},
			"resume s1 --trials 3": {command.ExitInvalid, "all 4 trials"},
		} {
			if r := pitchpipe(t, at(strings.Fields(args)...)...); r.code != want.code || !strings.Contains(r.errors, want.says) || strings.Count(r.errors, "\n") != 1 {
				t.Errorf("%s: exit %d, %q; want %d and %q", args, r.code, r.errors, want.code, want.says)
			}
		}
		if text := ok(t, at("stop", "s1")...); text != "s1 is over\n" {
			t.Errorf("stop of a search that is over: %q", text)
		}
		if text := ok(t, at("stop", "s1", "--json")...); !strings.Contains(text, `"stopped": "s1"`) {
			t.Errorf("stop of a search that is over: %q", text)
		}
	})
	t.Run("a preview knows what epochs took", func(t *testing.T) {
		t.Parallel()
		var p preview.Preview
		if decoded(t, &p, at("preview", file)...); p.Seconds == nil || p.Joules == nil || p.CoreHours == nil || p.Seconds.Mean <= 0 || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "job starts") {
			t.Errorf("preview %+v", p)
		}
	})
}

func TestTheTrialsOfASearchAreForTheNamespaceOfItsUser(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	var out, errs bytes.Buffer
	code := command.Run(t.Context(), command.World{
		Args: []string{"search", "run", searchFile(t, 1000), "--json", "--socket", c.Config.Socket}, Environ: []string{"NOMAD_NAMESPACE=team"}, Stdout: &out, Stderr: &errs,
	})
	var x trials.State
	if err := json.Unmarshal(out.Bytes(), &x); code != command.ExitOK || err != nil || x.Job.Namespace != "team" {
		t.Errorf("exit %d, %q, beside it %q (%v); want the namespace team", code, out.String(), errs.String(), err)
	}
}

func TestASearchIsStoppedAndGoesOn(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	at := func(args ...string) []string {
		return append([]string{"--socket", c.Config.Socket, "search"}, args...)
	}
	r := pitchpipe(t, at("run", searchFile(t, 1000))...)
	id := strings.TrimSpace(r.out)
	if r.code != command.ExitOK || !strings.Contains(r.errors, "4 trials of train; pitchpipe search status "+id) {
		t.Fatalf("run: exit %d, %q, beside it %q", r.code, r.out, r.errors)
	}
	if got := completions(t, at("stop", "")...); !slices.Equal(got, []string{id}) {
		t.Errorf("a search that can be stopped is completed as %q, want %q", got, id)
	}
	if got := completions(t, at("plot", "")...); !slices.Contains(got, "rungs") {
		t.Errorf("plots are completed as %q", got)
	}
	if got := completions(t, at("plot", "rungs", "")...); !slices.Equal(got, []string{id}) {
		t.Errorf("the search of a plot is completed as %q, want %q", got, id)
	}
	if r := pitchpipe(t, at("best")...); r.code != command.ExitNotFound || !strings.Contains(r.errors, "no trial of "+id+" has ended an epoch yet") {
		t.Errorf("best of no epoch: exit %d, %q", r.code, r.errors)
	}
	if text := ok(t, at("stop")...); !strings.Contains(text, "stopping "+id+"; pitchpipe search resume "+id) {
		t.Errorf("stop printed %q", text)
	}
	r = pitchpipe(t, at("status", id, "--watch")...)
	if r.code != command.ExitFailed || !strings.Contains(r.out, "is over: stopped by ") || !strings.Contains(r.errors, "no trial of "+id+" ended an epoch") {
		t.Errorf("its end: exit %d, %q, %q", r.code, r.out, r.errors)
	}
	if got := completions(t, at("resume", "")...); !slices.Equal(got, []string{id}) {
		t.Errorf("a search that can be resumed is completed as %q, want %q", got, id)
	}
	if text := ok(t, at("resume")...); !strings.HasPrefix(text, id+" runs: ") {
		t.Errorf("resume printed %q", text)
	}
	// Another begins while that one is over: it is the newest, whatever becomes of it.
	ok(t, at("stop", id)...)
	pitchpipe(t, at("status", id, "--watch")...)
	newer := strings.TrimSpace(pitchpipe(t, at("run", searchFile(t, 1000))...).out)
	if r := pitchpipe(t, at("resume")...); r.code != command.ExitNotFound || !strings.Contains(r.errors, "the newest, "+newer+", runs: ") {
		t.Errorf("resume while the newest runs: exit %d, %q, %q", r.code, r.out, r.errors)
	}
	ok(t, at("stop")...)
	pitchpipe(t, at("status", newer, "--watch")...)
	ok(t, at("resume", id)...)
	if r := pitchpipe(t, at("stop")...); r.code != command.ExitNotFound || !strings.Contains(r.errors, "the newest, "+newer+", is over: ") {
		t.Errorf("stop while an older one runs: exit %d, %q, %q", r.code, r.out, r.errors)
	}
	ok(t, at("stop", id)...)
}

func TestAPreviewNeedsNoControllerAndAGoodFile(t *testing.T) {
	t.Parallel()
	if text := ok(t, "search", "preview", searchFile(t, 0.02)); !strings.Contains(text, "In all 16 epochs, at most 16.\nTime: unknown") {
		t.Errorf("preview printed %q", text)
	}
	unknown := jobFile(t, "x", 2, 0.1, "#TUNE search trials=3", "#TUNE knob lr env=LR min=1 max=2", `#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'`)
	if text := ok(t, "search", "preview", unknown); !strings.Contains(text, "of as many epochs as the job says each") {
		t.Errorf("of trials of unknown length the preview printed %q", text)
	}
	for name, x := range map[string]struct{ file, says string }{
		"no search":      {jobFile(t, "plain", 2, 0.1, daemontest.Tuned("apply")...), "has no search block: want one such as #TUNE search"},
		"no stanza":      {jobFile(t, "plain", 2, 0.1), "has no search block"},
		"a wrong key":    {searchFile(t, 1, "#TUNE search trails=3"), `"trails"`},
		"an absent file": {"absent.sbatch", "absent.sbatch"},
	} {
		if r := pitchpipe(t, "search", "preview", x.file); r.code != command.ExitInvalid || r.out != "" || !strings.Contains(r.errors, x.says) {
			t.Errorf("%s: exit %d, %q, %q; want %d and %q", name, r.code, r.out, r.errors, command.ExitInvalid, x.says)
		}
	}
}
