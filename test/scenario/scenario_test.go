package scenario

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/sim"
)

var update = flag.Bool("update", false, "rewrite what the stories expect")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStories(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.txtar")
	if err != nil || len(paths) < 14 {
		t.Fatalf("found %d stories, error %v", len(paths), err)
	}
	for i, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			if i%6 > 0 && testing.Short() {
				t.Skip("one story of six: make check plays all")
			}
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(strings.TrimSpace(string(archive.Comment))) < 40 {
				t.Error("the story is not told in plain words")
			}
			files := map[string][]byte{}
			for _, f := range archive.Files {
				files[f.Name] = f.Data
			}
			got := happen(t, files)
			if *update && !t.Failed() {
				rewrite(t, path, archive, got)
				return
			}
			if diff := cmp.Diff(string(files["expect"]), got); diff != "" {
				t.Errorf("the story ends otherwise (-want +got):\n%s", diff)
			}
		})
	}
}

func rewrite(t *testing.T, path string, archive *txtar.Archive, got string) {
	t.Helper()
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "expect" })
	if i < 0 {
		archive.Files = append(archive.Files, txtar.File{Name: "expect"})
		i = len(archive.Files) - 1
	}
	archive.Files[i].Data = []byte(got)
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// happen plays a story and reports its end.
func happen(t *testing.T, files map[string][]byte) (out string) {
	t.Helper()
	script, err := parseScript(string(files["script"]))
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	sitePath := ""
	if policy, ok := files["site.yaml"]; ok {
		sitePath = filepath.Join(state, "site.yaml")
		if err := os.WriteFile(sitePath, policy, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	site, err := config.LoadSite(sitePath)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, files, state, site, sim.Config{EnergySource: "rapl", Nodes: []sim.NodeSpec{{Name: "node-1", Cores: 16, MemoryBytes: 64 << 30}}})
		p.start()
		defer p.leave()
		p.perform(script)
		var pauses []api.Pause
		p.ask("root", "GET", api.PathPauses, nil, &pauses)
		cast, audit := p.collect()
		p.always(cast, audit)
		if len(p.broken) == 0 && len(p.log.texts) > 0 {
			t.Errorf("the controller complained: %q", p.log.texts)
		}
		out = report(cast, pauses)
	})
	return out
}
