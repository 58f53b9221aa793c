package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

// TestSitePolicies reads testdata/site/*.txtar: a policy, and either the faults
// that it has or jobs and what it allows them.
func TestSitePolicies(t *testing.T) {
	t.Parallel()
	invalid := 0
	all := goldens(t, "testdata/site/*.txtar", 30)
	for _, g := range all {
		if !g.has("jobs") {
			invalid++
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			p, err := parseSite("site.yaml", []byte(g.section("site.yaml")))
			if !g.has("jobs") {
				if err == nil {
					t.Fatal("parseSite took it, want faults")
				}
				if !errors.Is(err, ErrInvalid) {
					t.Errorf("%v is not ErrInvalid", err)
				}
				g.want(t, "faults", err.Error()+"\n")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for line := range strings.Lines(g.section("jobs")) {
				name := map[string]string{}
				for f := range strings.FieldsSeq(line) {
					k, v, _ := strings.Cut(f, "=")
					name[k] = v
				}
				b.WriteString("# " + strings.TrimSpace(line) + "\n")
				b.WriteString(changed(t, p.For(name["partition"], name["account"], name["qos"], name["user"])))
			}
			g.want(t, "allowed", b.String())
		})
	}
	if valid := len(all) - invalid; invalid < 15 || valid < 5 {
		t.Errorf("%d invalid and %d valid policies, want at least 15 and 5", invalid, valid)
	}
}

// changed prints the fields that differ from the built-in policy.
func changed(t *testing.T, s tuning.Site) string {
	t.Helper()
	fields := func(s tuning.Site) map[string]json.RawMessage {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]json.RawMessage
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	base, got := fields(tuning.DefaultSite()), fields(s)
	var b strings.Builder
	for _, k := range topKeys() {
		if string(base[k]) != string(got[k]) {
			b.WriteString(k + " " + string(got[k]) + "\n")
		}
	}
	if b.Len() == 0 {
		return "(built-in)\n"
	}
	return b.String()
}

func TestEveryFieldOfTheSiteHasAKey(t *testing.T) {
	t.Parallel()
	var fields []string
	for f := range reflect.TypeFor[tuning.Site]().Fields() {
		if f.Name != "Sources" {
			fields = append(fields, f.Tag.Get("json"))
		}
	}
	if diff := cmp.Diff(fields, topKeys()); diff != "" {
		t.Errorf("keys of the policy file and fields of tuning.Site (-fields +keys):\n%s", diff)
	}
}

func TestEachKeySaysWhichLineItComesFrom(t *testing.T) {
	t.Parallel()
	p, err := parseSite("site.yaml", []byte("default:\n  max_mode: apply\n  ceilings: {cores: 4}\npartition:\n  gpu:\n    above_request: true\n    ceilings:\n      lr: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for partition, want := range map[string]map[string]string{
		"":    {"max_mode": "site.yaml:2", "above_request": "default", "ceilings.cores": "site.yaml:3", "ceilings.lr": "", "margin": "default"},
		"gpu": {"max_mode": "site.yaml:2", "above_request": "site.yaml:6", "ceilings.cores": "site.yaml:3", "ceilings.lr": "site.yaml:8", "margin": "default"},
	} {
		got := p.For(partition, "", "", "").Sources
		for key, from := range want {
			if got[key] != from {
				t.Errorf("in partition %q %s comes from %q, want %q", partition, key, got[key], from)
			}
		}
	}
}

func TestAWholeNumberWithLeadingZerosIsDecimal(t *testing.T) {
	t.Parallel()
	p, err := parseSite("site.yaml", []byte("default: {job_restarts: 010, max_tuned: 08}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s := p.For("", "", "", ""); s.JobRestarts != 10 || s.MaxTuned != 8 {
		t.Errorf("010 is %d and 08 is %d, want 10 and 8", s.JobRestarts, s.MaxTuned)
	}
}

func TestACeilingIsTheNumberThatWasChecked(t *testing.T) {
	t.Parallel()
	p, err := parseSite("site.yaml", []byte("default: {ceilings: {cores: 0x10p0, memory: 2GiB}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := tuning.Settings{"cores": tuning.Number(16), "memory": tuning.Number(2 << 30)}
	if diff := cmp.Diff(want, p.For("", "", "", "").Ceilings); diff != "" {
		t.Errorf("ceilings (-want +got):\n%s", diff)
	}
}

func TestNoFileIsTheBuiltInPolicyAndAMissingOneIsAnError(t *testing.T) {
	t.Parallel()
	p, err := LoadSite("")
	if err != nil {
		t.Fatal(err)
	}
	got := p.For("p", "a", "q", "u")
	for _, key := range topKeys() {
		if got.Sources[key] != tuning.FromDefault {
			t.Errorf("%s comes from %q", key, got.Sources[key])
		}
	}
	got.Sources = nil
	if diff := cmp.Diff(tuning.DefaultSite(), got); diff != "" {
		t.Errorf("LoadSite(\"\") (-want +got):\n%s", diff)
	}
	if _, err := LoadSite("/nonexistent/site.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("LoadSite of a missing file = %v, want fs.ErrNotExist", err)
	}
}

// TestRootObeysRootOnly uses real files of the process's own user: where that is
// not root, the same files show the refusal of another owner.
func TestRootObeysRootOnly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		file, dir  fs.FileMode
		accepted   bool
		complaints string
	}{
		{"a private file is obeyed", 0o600, 0o700, true, ""},
		{"a readable file is obeyed", 0o644, 0o755, true, ""},
		{"a file in a sticky directory is obeyed", 0o644, 0o777 | fs.ModeSticky, true, ""},
		{"a file that the group may write is refused", 0o664, 0o755, false, "mode 0664"},
		{"a file that all may write is refused", 0o646, 0o755, false, "mode 0646"},
		{"a file in a directory that all may write is refused", 0o644, 0o777, false, "mode 0777"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := write(t, "site.yaml", "default: {max_mode: apply}\n")
			for name, mode := range map[string]fs.FileMode{path: tc.file, filepath.Dir(path): tc.dir} {
				if err := os.Chmod(name, mode); err != nil {
					t.Fatal(err)
				}
			}
			_, err := loadSite(path, 0)
			want := tc.complaints
			if os.Geteuid() != 0 {
				tc.accepted, want = false, "belongs to uid"
			}
			if tc.accepted && err != nil {
				t.Fatal(err)
			}
			if !tc.accepted && (!errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), want)) {
				t.Fatalf("loadSite = %v, want ErrUntrusted and %q", err, want)
			}
			if _, err := loadSite(path, 1000); err != nil {
				t.Errorf("a user's own controller refuses it: %v", err)
			}
		})
	}
}

type info struct {
	fs.FileInfo
	uid  uint32
	mode fs.FileMode
}

func (i info) Sys() any          { return &syscall.Stat_t{Uid: i.uid} }
func (i info) Mode() fs.FileMode { return i.mode }
func (i info) IsDir() bool       { return i.mode.IsDir() }

func TestAnotherOwnersFileIsRefused(t *testing.T) {
	t.Parallel()
	if err := distrust("site.yaml", info{uid: 1000, mode: 0o600}, 0o022, 0); !errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), "uid 1000") {
		t.Errorf("distrust = %v, want ErrUntrusted with the owner", err)
	}
	if err := distrust("site.yaml", info{uid: 0, mode: 0o600}, 0o022, 0); err != nil {
		t.Errorf("distrust of root's own file = %v", err)
	}
}

func TestOnlyARegularFileIsAPolicy(t *testing.T) {
	t.Parallel()
	if _, err := loadSite(t.TempDir(), 0); !errors.Is(err, ErrUntrusted) {
		t.Errorf("loadSite of a directory = %v, want ErrUntrusted", err)
	}
}

// TestTheNarrowestBlockThatSetsAFieldWins draws policies and jobs and resolves
// them a second way: for each field the last block that says anything.
func TestTheNarrowestBlockThatSetsAFieldWins(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type block struct {
			mode     string
			control  string
			reserve  string
			ceilings map[string]string
		}
		draw := rapid.Custom(func(t *rapid.T) block {
			return block{
				rapid.SampledFrom([]string{"", "observe", "recommend", "apply"}).Draw(t, "mode"),
				rapid.SampledFrom([]string{"", "0", "0.25", "1"}).Draw(t, "control"),
				rapid.SampledFrom([]string{"", "0s", "1m", "2h"}).Draw(t, "reserve"),
				rapid.MapOfN(rapid.SampledFrom([]string{"cores", "gpus", "lr"}), rapid.SampledFrom([]string{"none", "1", "4"}), 0, 3).Draw(t, "ceilings"),
			}
		})
		written := func(b block) string {
			var parts []string
			for k, v := range map[string]string{"max_mode": b.mode, "control": b.control, "limit_reserve": b.reserve} {
				if v != "" {
					parts = append(parts, k+": "+v)
				}
			}
			var ceilings []string
			for k, v := range b.ceilings {
				ceilings = append(ceilings, k+": "+v)
			}
			if len(ceilings) > 0 {
				parts = append(parts, "ceilings: {"+strings.Join(ceilings, ", ")+"}")
			}
			return "{" + strings.Join(parts, ", ") + "}\n"
		}
		names := []string{"", "x", "y"}
		base := draw.Draw(t, "default")
		text := "default: " + written(base)
		blocks := map[string]block{}
		for _, scope := range scopes() {
			text += scope + ":\n"
			for _, name := range names[1:] {
				if rapid.Bool().Draw(t, "has") {
					b := draw.Draw(t, scope)
					blocks[scope+name] = b
					text += "  " + name + ": " + written(b)
				}
			}
		}
		p, err := parseSite("site.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}

		chosen := make([]string, len(scopes()))
		want := tuning.DefaultSite()
		ceilings := map[string]string{}
		lay := func(b block) {
			if b.mode != "" {
				want.MaxMode = tuning.Mode(b.mode)
			}
			if b.control != "" {
				want.Control = map[string]float64{"0": 0, "0.25": 0.25, "1": 1}[b.control]
			}
			if b.reserve != "" {
				want.LimitReserve = map[string]time.Duration{"0s": 0, "1m": time.Minute, "2h": 2 * time.Hour}[b.reserve]
			}
			maps.Copy(ceilings, b.ceilings)
		}
		lay(base)
		for i, scope := range scopes() {
			chosen[i] = rapid.SampledFrom(names).Draw(t, scope)
			lay(blocks[scope+chosen[i]])
		}
		got := p.For(chosen[0], chosen[1], chosen[2], chosen[3])
		gotCeilings := map[string]string{}
		for k, v := range got.Ceilings {
			gotCeilings[k] = v.String()
		}
		for k, v := range ceilings {
			if v == "none" {
				delete(ceilings, k)
			}
		}
		if diff := cmp.Diff(ceilings, gotCeilings); diff != "" {
			t.Fatalf("ceilings of %v (-want +got):\n%s\n%s", chosen, diff, text)
		}
		got.Ceilings, got.Sources = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("For(%v) (-want +got):\n%s\n%s", chosen, diff, text)
		}
	})
}

func TestWhatForReturnsIsTheCallersOwn(t *testing.T) {
	t.Parallel()
	p, err := parseSite("site.yaml", []byte("default: {knobs: [cores], ceilings: {cores: 4}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	first := p.For("", "", "", "")
	first.Knobs[0] = "gpus"
	first.Ceilings["cores"] = tuning.Number(99)
	second := p.For("", "", "", "")
	if second.Knobs[0] != "cores" || second.Ceilings["cores"] != tuning.Number(4) {
		t.Errorf("a caller changed the policy: %v %v", second.Knobs, second.Ceilings)
	}
}

// faults are those that an error joins.
func faults(t *testing.T, err error) (out []Error) {
	t.Helper()
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%v joins no faults", err)
	}
	for _, e := range all.Unwrap() {
		fault, ok := errors.AsType[Error](e)
		if !ok {
			t.Fatalf("%v is no fault", e)
		}
		out = append(out, fault)
	}
	return out
}

// topKeys are the keys of a block, each once.
func topKeys() (out []string) {
	for _, k := range siteKeys() {
		name, _, _ := strings.Cut(k.Name, ".")
		if k.Help != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func FuzzSite(f *testing.F) {
	archives, err := filepath.Glob("testdata/site/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseSite("site.yaml", data)
		if err != nil {
			for _, fault := range faults(t, err) {
				if !strings.HasPrefix(fault.Pos.String(), "site.yaml") || fault.fault == "" {
					t.Errorf("a fault without place or text: %+v", fault)
				}
			}
			return
		}
		s := p.For("a", "b", "c", "d")
		for _, share := range []float64{s.Control, s.ProbeShare} {
			if !(share >= 0 && share <= 1) {
				t.Errorf("accepted the share %v", share)
			}
		}
		if !slices.Contains(tuning.Modes(), s.MaxMode) || s.LimitReserve < 0 || !(s.Margin >= 1) ||
			min(s.JobRestarts, s.KindReturns, s.UserRestarts, s.TotalRestarts, s.MaxTuned, s.PauseAfter) < 0 {
			t.Errorf("accepted %+v", s)
		}
	})
}
