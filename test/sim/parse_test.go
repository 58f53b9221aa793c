package sim_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/test/sim"
)

func TestParseBehaviour(t *testing.T) {
	t.Parallel()
	const src = "#!/bin/sh\r\n" +
		"#SBATCH --cpus-per-task=4\n" +
		"#SIM epochs=40 seconds=2\tparallel=0.9\n\n" +
		"# a comment, and #SIMILAR is one too\n#SIMILAR x\n" +
		"#SIM batch=BATCH_SIZE contended=3-5,8 checkpoint=5s checkpoint_exit=none memory=512MiB\n" +
		"./train #SIM is not read here\n"
	b, err := sim.ParseBehaviour("job.sh", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if b.Epochs != 40 || b.Seconds != 2 || b.Parallel != 0.9 || b.Batch != "BATCH_SIZE" ||
		b.Checkpoint != 5*time.Second || b.CheckpointExit != 0 || b.Memory != 512<<20 || b.Base != 32 {
		t.Errorf("read %+v", b)
	}
	if diff := cmp.Diff([]sim.Span{{First: 3, Last: 5}, {First: 8, Last: 8}}, b.Contended); diff != "" {
		t.Errorf("contended (-want +got):\n%s", diff)
	}
}

func TestParseBehaviourErrors(t *testing.T) {
	t.Parallel()
	const none = "f:1: every simulated job says how it behaves, such as #SIM epochs=10 seconds=2"
	tests := []struct{ name, src, want string }{
		{"nothing", "", none},
		{"an empty line", "#SIM\n", none},
		{"a key without a value", "#SIM epochs= seconds=1", `f:1: epochs=""; want a whole number from 1 to 1000000`},
		{"a word alone", "#SIM epochs=1 seconds=1 fast", `f:1: "fast": want key=value, and each key once`},
		{"a key again", "#SIM epochs=1 seconds=1\n#SIM seconds=2", `f:2: "seconds=2": want key=value, and each key once`},
		{"an unknown key", "#SIM epochs=1 seconds=1 paralel=1", `f:1: unknown key "paralel"`},
		{"two faults", "#SIM seconds=-1\n#SIM epochs=0", "f:1: seconds=\"-1\"; want a number from 1e-06 to 1e+06\nf:2: epochs=\"0\"; want a whole number from 1 to 1000000"},
		{"no finite number", "#SIM epochs=1 seconds=NaN", `f:1: seconds="NaN"; want a number from 1e-06 to 1e+06`},
		{"a share above one", "#SIM epochs=1 seconds=1 parallel=1.1", `f:1: parallel="1.1"; want a number from 0 to 1`},
		{"a duration without a unit", "#SIM epochs=1 seconds=1 checkpoint=5", `f:1: checkpoint="5"; want a duration from 0s to 720h, such as 5s or 1.5m`},
		{"a decimal unit of memory", "#SIM epochs=1 seconds=1 memory=5GB", `f:1: memory="5GB"; want an amount of memory up to 64TiB, such as 512MiB or 2GiB`},
		{"too much memory", "#SIM epochs=1 seconds=1 memory=65TiB", `f:1: memory="65TiB"; want an amount of memory up to 64TiB, such as 512MiB or 2GiB`},
		{"no flag", "#SIM epochs=1 seconds=1 missing=yes", `f:1: missing="yes"; want true or false`},
		{"an unknown profile", "#SIM epochs=1 seconds=1 profile=gpu", `f:1: profile="gpu"; want one of compute, stream, barrier, alloc, io`},
		{"no variable", "#SIM epochs=1 seconds=1 batch=1X", `f:1: batch="1X"; want the name of an environment variable`},
		{"an exit status of nought for saved", "#SIM epochs=1 seconds=1 checkpoint_exit=0", `f:1: checkpoint_exit="0"; want a whole number from 1 to 255, or none`},
		{"epochs backwards", "#SIM epochs=1 seconds=1 contended=5-3", `f:1: contended="5-3"; want epochs such as 3 or 3-5 or 3-5,8`},
		{"an epoch that does not come", "#SIM epochs=3 seconds=1 at=4", `f:1: at=4; the job has 3 epochs`},
		{"a line after the first command", "#SIM epochs=3 seconds=1\nsleep 1\n#SIM exit=1\n", "f:3: #SIM stands at the beginning of a line before the first command"},
		{"an indented line", "#SIM epochs=3 seconds=1\n #SIM exit=1\n", "f:2: #SIM stands at the beginning of a line before the first command"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := sim.ParseBehaviour("f", []byte(tt.src))
			if diff := cmp.Diff(tt.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// The table in doc.go names exactly the keys that exist, with their defaults as
// the parser has them where the table gives a plain value.
func TestTableOfKeysIsComplete(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(doc), "//\tkey ")
	if !ok {
		t.Fatal("doc.go has no table")
	}
	described := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^//\t(\w+) {2,}(.+?)(?: {2,}|$)`).FindAllStringSubmatch(table, -1) {
		described[row[1]] = row[2]
	}
	b, err := sim.ParseBehaviour("f", []byte("#SIM epochs=1 seconds=1 batch=B checkpoint=1s contended=1 show_env=E closed_by=m"))
	if err != nil {
		t.Fatal(err)
	}
	for pair := range strings.FieldsSeq(strings.TrimPrefix(b.String(), "#SIM")) {
		key, value, _ := strings.Cut(pair, "=")
		def, ok := described[key]
		delete(described, key)
		switch {
		case !ok:
			t.Errorf("the table lacks %s", key)
		case key == "memory":
			value = "64MiB" // printed in bytes
			fallthrough
		case regexp.MustCompile(`^(-?\d[\d.]*s?|true|false|[A-Z_]+|64MiB|compute)$`).MatchString(def):
			if key == "owner_changes_at" || key == "dies_at" {
				continue
			}
			if def != value {
				t.Errorf("the table says that %s is %s, it is %s", key, def, value)
			}
		}
	}
	for key := range described {
		t.Errorf("the table has %s, which does not exist", key)
	}
}

// Whatever is read can be printed and is then read as the same; nothing makes
// the parser panic, and every fault has a line.
func FuzzParseBehaviour(f *testing.F) {
	for _, seed := range []string{
		"#SIM epochs=40 seconds=2 parallel=0.9\n",
		"#SIM epochs=1 seconds=1 contended=3-5,8 checkpoint=5s checkpoint_exit=none memory=512MiB\n",
		"#SIM profile=io spin=5e-1 epochs=3 seconds=1e-3 seed=-7\n",
		"#SIM epochs=1\tseconds=1 batch=B exponent=-0.5 exit=1 at=1\r\n./x\n#SIM",
		"#SIM epochs== seconds=0x1p3 =3\n",
		"#SIMX\n #SIM\n#SIM \x00=\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		b, err := sim.ParseBehaviour("f", src)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("error %v, want a line", err)
			}
			return
		}
		again, err := sim.ParseBehaviour("f", []byte(b.String()))
		if err != nil {
			t.Fatalf("printed as %q, which is refused: %v", b, err)
		}
		if diff := cmp.Diff(b, again); diff != "" {
			t.Errorf("printed as %q, which is read differently (-first +again):\n%s", b, diff)
		}
	})
}
