package benchpipeline

import (
	"math"
	"strings"
	"testing"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile/detect"
)

func TestEachKindHasAJobFileThatIsUnderstood(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		for _, m := range modes() {
			file, err := detect.Parse("job.sbatch", []byte(k.file(Options{Trials: 7, Epochs: 27}, k.cores, string(m.system), 1)), nil)
			if err != nil {
				t.Fatal(err)
			}
			p, err := stanza.Policy(file)
			if err != nil || p.Search == nil || p.Search.System != m.system || p.Search.Trials != 7 {
				t.Errorf("%s, %s: %v, %+v", k.name, m.name, err, p.Search)
			}
			if rungs := p.Search.Rungs(); len(rungs) != 3 {
				t.Errorf("rungs at %v, want three", rungs)
			}
			if k.cores > 1 && stanza.Own(file, p)[tuning.Threads] != tuning.Number(float64(k.cores)) {
				t.Errorf("%s runs %s", k.name, stanza.Own(file, p))
			}
		}
	}
}

func TestModesAreComparedByKindAndRepetition(t *testing.T) {
	t.Parallel()
	v1, pipelined := modes()[0].name, modes()[2].name
	r := Report{rows: []row{
		{kind: "digits", mode: v1, repeat: 1, seconds: 100, joules: 10, source: "rapl", quality: 0.9},
		{kind: "digits", mode: pipelined, repeat: 1, seconds: 50, quality: 0.9},
		{kind: "dense", mode: v1, repeat: 1, seconds: 10, joules: 3, source: "rapl", quality: 0.8},
		{kind: "dense", mode: pipelined, repeat: 1, seconds: 5, quality: 0.8},
		{kind: "dense", mode: pipelined, repeat: 2, seconds: 500}, // without a partner
	}}
	if x := r.compare(pipelined, v1, seconds); math.Abs(x.mean-0.5) > 1e-9 || math.Abs(x.high-0.5) > 1e-9 || x.n != 2 {
		t.Errorf("the ratio is %s", x)
	}
	if x := r.compare(pipelined, v1, joules); x.n != 0 {
		t.Errorf("what was not measured is compared: %s", x)
	}
	r.rows[1].seconds = 90
	if x := r.compare(pipelined, v1, seconds); x.low > 0.5 || x.high < 0.9 {
		t.Errorf("two searches that differ leave %s", x)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"digits", "not measured", "10 rapl", "<= 0.75  met"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}
