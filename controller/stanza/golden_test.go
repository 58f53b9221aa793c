package stanza_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"pitchpipe/controller/stanza"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/jobfile/jsontree"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// read reads a job file, or a stanza alone where the name ends in .json.
func read(filename string, src []byte) (*jobfile.Job, error) {
	if filepath.Ext(filename) != ".json" {
		return detect.Parse(filename, src, nil)
	}
	block, err := jsontree.Parse(src, func(offset int, _ string) jobfile.Pos { return jobfile.At(filename, src, offset) })
	if err != nil {
		return nil, err
	}
	return &jobfile.Job{Stanza: block}, nil
}

// golden runs every archive of a folder: the first file goes in, the file "want"
// comes out.
func golden(t *testing.T, folder string, least int, run func(t *testing.T, name string, src []byte) string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(paths) < least {
		t.Fatalf("%d golden files in %s, want at least %d (%v)", len(paths), folder, least, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil || len(archive.Files) != 2 {
				t.Fatalf("%s: want an input and its outcome: %v", path, err)
			}
			got := run(t, archive.Files[0].Name, archive.Files[0].Data)
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

// inputs are the first files of every archive of a folder.
func inputs(t testing.TB, folder string) []txtar.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []txtar.File
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil || len(archive.Files) == 0 {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, archive.Files[0])
	}
	return out
}

func TestInvalidStanzas(t *testing.T) {
	t.Parallel()
	golden(t, "invalid", 40, func(t *testing.T, name string, src []byte) string {
		t.Helper()
		job, err := read(name, src)
		if err == nil {
			_, err = stanza.Policy(job)
		}
		if err == nil {
			t.Fatal("accepted")
		}
		return err.Error() + "\n"
	})
}

func TestValidStanzas(t *testing.T) {
	t.Parallel()
	golden(t, "valid", 14, func(t *testing.T, name string, src []byte) string {
		t.Helper()
		job, err := read(name, src)
		if err != nil {
			t.Fatal(err)
		}
		p, err := stanza.Policy(job)
		if err != nil {
			t.Fatal(err)
		}
		again(t, job, p)
		return stanza.Print(p) + "\n" + stanza.PrintLines(p)
	})
}

func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	got := stanza.Reference()
	if *update {
		if err := os.WriteFile("REFERENCE.md", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("REFERENCE.md is not current, run the test with -update (-want +got):\n%s", diff)
	}
}

// TestLuaTableIsCurrent holds the table of the submission plugin to the keys.
func TestLuaTableIsCurrent(t *testing.T) {
	t.Parallel()
	const file = "../../scripts/slurm/pitchpipe_keys.lua"
	got := stanza.LuaTable()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not current, run the test with -update (-want +got):\n%s", file, diff)
	}
}

// TestEveryExampleOfTheReferenceIsAccepted holds the table to its word: an
// example may fail only for what is around it, never by itself.
func TestEveryExampleOfTheReferenceIsAccepted(t *testing.T) {
	t.Parallel()
	companions := map[string]string{
		"weight":    `objective = "blend"`,
		"file":      `pattern = "(?P<epoch>.)"`,
		"total":     `report = true`,
		"env":       "values = [32]\ndefault = 32",
		"arg":       "values = [32]\ndefault = 32",
		"live":      "values = [32]\ndefault = 32",
		"follows":   `env = "X"`,
		"values":    "env = \"X\"\ndefault = 32",
		"min":       "env = \"X\"\nmax = 1\ndefault = 32",
		"max":       "env = \"X\"\nmin = 0\ndefault = 32",
		"scale":     "env = \"X\"\nmin = 1\nmax = 2\ndefault = 32",
		"default":   "env = \"X\"\nvalues = [1]",
		"quality":   "env = \"X\"\nvalues = [1]\ndefault = 32",
		"max_loss":  `direction = "max"`,
		"target":    `direction = "max"`,
		"signal":    "exit = 85",
		"grace":     "exit = 85",
		"direction": "",
		"measures":  `direction = "max"`,
		"when":      "env = \"X\"\nvalues = [1]",
	}
	const searching = "knob \"optimizer\" {\nenv = \"O\"\nvalues = [\"sgd\"]\n}\n" +
		"progress {\npattern = \"(?P<epoch>.)(?P<total>.)(?P<loss>.)(?P<quality>.)\"\n}\nsearch { epochs = 81 }\n"
	for _, k := range stanza.Keys() {
		t.Run(k.Block+" "+k.Name, func(t *testing.T) {
			t.Parallel()
			inner := k.HCL() + "\n" + companions[k.Name] + "\n"
			around := ""
			switch k.Block {
			case "":
			case "knob":
				inner = "knob \"x\" {\n" + inner + "}\n"
				around = "knob \"cores\" { values = [1] }\n"
				if k.Name == "when" {
					around = searching
				}
			default:
				inner = k.Block + " {\n" + inner + "}\n"
				switch {
				case k.Name == "measures":
					around = searching
				case k.Block == "quality":
					around = "progress { report = true }\n"
				case k.Block == "action":
					inner = "action \"x\" {\n" + k.HCL() + "\n}\n"
					around = "progress { report = true }\nquality { direction = \"max\" }\n"
				case k.Block == "search":
					around = strings.Replace(searching, "search { epochs = 81 }", "", 1)
				}
			}
			job, err := read("job.nomad.hcl", []byte(wrap("tuning {\n"+around+inner+"}\n")))
			if err == nil {
				_, err = stanza.Policy(job)
			}
			if err != nil {
				t.Errorf("%s: %v", inner, err)
			}
			if !slices.Contains(stanza.Blocks(), k.Block) {
				t.Errorf("the block %q is not listed", k.Block)
			}
		})
	}
}

// TestAWordOfAnotherToolIsAnsweredWithOurs writes each of them at the top level and in its block.
func TestAWordOfAnotherToolIsAnsweredWithOurs(t *testing.T) {
	t.Parallel()
	for _, k := range stanza.Keys() {
		for word := range strings.FieldsSeq(k.Elsewhere) {
			attrs := []jobfile.Attr{{Name: word, Value: jobfile.Value{Kind: jobfile.Bare, Text: "1"}}}
			for _, top := range []*jobfile.Block{{Attrs: attrs}, {Blocks: []*jobfile.Block{{Type: k.Block, Attrs: attrs}}}} {
				if k.Block == "knob" && len(top.Blocks) > 0 {
					top.Blocks[0].Label = "x"
				}
				_, err := stanza.Policy(&jobfile.Job{Format: jobfile.Sbatch, Stanza: top})
				if err == nil || !strings.Contains(err.Error(), "; here that is ") || !strings.Contains(err.Error(), k.Line()) {
					t.Errorf("%s of the block %q: %v, want %s", word, k.Block, err, k.Line())
				}
			}
		}
	}
}

// wrap puts a tuning block into a Nomad job file.
func wrap(tuning string) string {
	return "job \"j\" {\ntype = \"batch\"\n" + tuning + `group "g" {
  task "t" {
    driver = "raw_exec"
    config { command = "/bin/true" }
  }
}
}
`
}
