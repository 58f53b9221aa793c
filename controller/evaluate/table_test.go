package evaluate_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

const small = `workload,machine,knob_cores,knob_schedule,seconds,joules,repeat
sp,xeon,1,static,10.5,,0
sp,xeon,2,,6,700,0
bt,xeon,2,static,3e2,1.5,1
sp,arm,2,static,7,8,0
`

func parse(t *testing.T, text string, f evaluate.Format) evaluate.Table {
	t.Helper()
	table, err := evaluate.Parse("small.csv", strings.NewReader(text), f)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestATableKeepsWhatIsMissingApartFromZero(t *testing.T) {
	t.Parallel()
	table := parse(t, small, evaluate.Trials)
	if got := table.Knobs(); !cmp.Equal(got, []string{"cores", "schedule"}) {
		t.Errorf("knobs %v", got)
	}
	r := table.Rows[0]
	if _, ok := r.Float("joules"); ok || r.Line != 2 {
		t.Errorf("line %d: an empty cell is a number", r.Line)
	}
	if v, ok := r.Float("repeat"); !ok || v != 0 {
		t.Errorf("repeat is %v, %t; want the zero that stands there", v, ok)
	}
	if got := table.Rows[1].Knobs; !got.Equal(tuning.Settings{"cores": tuning.Number(2)}) {
		t.Errorf("settings %v: an empty cell is a setting", got)
	}
	groups := table.Groups()
	if len(groups) != 3 || groups[0].Workload != "sp" || len(groups[0].Rows) != 2 || groups[2].Machine != "arm" {
		t.Errorf("groups %+v", groups)
	}
}

func TestATableIsReadBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	table := parse(t, small, evaluate.Trials)
	var first, second bytes.Buffer
	if err := evaluate.Write(&first, table); err != nil {
		t.Fatal(err)
	}
	if err := evaluate.Write(&second, parse(t, first.String(), evaluate.Trials)); err != nil || first.String() != second.String() {
		t.Errorf("%v: %s", err, cmp.Diff(first.String(), second.String()))
	}
}

func TestAZippedTableIsReadByItsContent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "small.csv")
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(small)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), os.WriteFile(path, zipped.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	if table, err := evaluate.Read(path, evaluate.Trials); err != nil || len(table.Rows) != 4 {
		t.Errorf("%d rows: %v", len(table.Rows), err)
	}
}

func TestABadTableIsOneErrorWithItsPlace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		format     evaluate.Format
		want       string
	}{
		{"an empty file", "", evaluate.Trials, "x.csv:1:1: it is empty: want a header row of trials"},
		{"a header alone", "workload,machine\n", evaluate.Trials, "x.csv: it has a header and no rows"},
		{"a missing column", "workload,knob_cores\na,1\n", evaluate.Trials, `x.csv:1:1: column "machine" is missing: a file of trials has at least workload, machine`},
		{"a column twice", "workload,machine,seconds,seconds\na,b,1,2\n", evaluate.Trials, `x.csv:1:26: column "seconds" stands twice`},
		{"a column without a name", "workload,machine,\na,b,1\n", evaluate.Trials, "x.csv:1:18: a column without a name"},
		{"a word for a number", "workload,machine,seconds\na,b,1\na,b,fast\n", evaluate.Trials, `x.csv:3:5: seconds is "fast": want a number, or nothing where it is missing`},
		{"a word for a flag", "workload,machine,failed\na,b,perhaps\n", evaluate.Trials, `x.csv:2:5: failed is "perhaps": want a number, or nothing where it is missing`},
		{"a short row", "workload,machine,seconds\na,b\n", evaluate.Trials, "x.csv:2:1: wrong number of fields"},
		{"a quote that does not end", "workload,machine\n\"a,b\n", evaluate.Trials, `x.csv:2:6: extraneous or missing " in quoted-field`},
		{"no workload", "workload,machine\n,b\n", evaluate.Trials, "x.csv:2:1: the workload is missing"},
		{"no run", "run,workload,machine,epoch\n,a,b,1\n", evaluate.Curves, "x.csv:2:1: the run is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := evaluate.Parse("x.csv", strings.NewReader(tc.text), tc.format)
			if !errors.Is(err, evaluate.ErrInvalid) || err.Error() != "invalid records: "+tc.want {
				t.Errorf("got  %v\nwant invalid records: %s", err, tc.want)
			}
		})
	}
}

func TestStrangersColumnsKeepTheirWords(t *testing.T) {
	t.Parallel()
	table := parse(t, "workload, machine ,knob_schedule,knob_cores,gpu_name,input,failed,seconds,joules\n"+
		"a,m,static,2,NVIDIA A100, small ,True,NaN,NA\na,m,dynamic,nan,7,large,false, 1.5 ,inf\n", evaluate.Trials)
	one, two := table.Rows[0], table.Rows[1]
	if one.Text("gpu_name") != "NVIDIA A100" || one.Input() != "small" || !one.Failed() || two.Failed() {
		t.Errorf("%+v", table.Rows)
	}
	if v, ok := two.Float("gpu_name"); !ok || v != 7 {
		t.Errorf("gpu_name %v, %t: what reads as a number is one", v, ok)
	}
	for _, r := range table.Rows {
		if _, ok := r.Float("joules"); ok {
			t.Errorf("line %d: joules that are missing are a number", r.Line)
		}
	}
	if _, ok := one.Float("seconds"); ok {
		t.Error("NaN is a number")
	}
	if v, ok := two.Outcome("seconds"); !ok || v != 1.5 {
		t.Errorf("seconds %v, %t", v, ok)
	}
	want := tuning.Settings{"schedule": tuning.Word("dynamic")}
	if !two.Knobs.Equal(want) || one.Knobs["schedule"] != tuning.Word("static") || one.Knobs["cores"] != tuning.Number(2) {
		t.Errorf("settings %v and %v", one.Knobs, two.Knobs)
	}
}

func TestOnlyWhatRanHasAnOutcome(t *testing.T) {
	t.Parallel()
	table := parse(t, "workload,machine,knob_memory_gib,relative_speed,seconds,failed\n"+
		"a,m,8,0.1,5,\na,m,16,0.1,5,\na,m,16,1,0,\na,m,16,1,5,1\na,m,16,1,5,0\na,m,16,1,-5,0\na,m,16,1,,0\n", evaluate.Trials)
	var got []bool
	for _, r := range table.Rows {
		_, ok := r.Outcome("seconds")
		got = append(got, ok)
	}
	// A relative speed of 0.1 marks runs that did not fit: only those with the least memory.
	if want := []bool{false, true, false, false, true, false, false}; !cmp.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
}

func TestRunsAreKnownByMoreThanTheirNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		want       []int // lines of the first row of each run
	}{
		{"another machine", "0,a,m,1,1\n0,a,n,1,1\n0,a,m,1,2\n0,a,n,1,2\n", []int{2, 3}},
		{"another workload", "0,a,m,1,1\n0,b,m,1,1\n", []int{2, 3}},
		{"other settings from the start", "0,a,m,1,1\n0,a,m,1,2\n0,a,m,2,1\n0,a,m,2,2\n", []int{2, 4}},
		{"other settings by turns", "0,a,m,1,1\n0,a,m,2,1\n0,a,m,1,2\n0,a,m,2,2\n", []int{2, 3}},
		{"settings that change as it goes on", "0,a,m,1,1\n0,a,m,2,2\n0,a,m,1,3\n", []int{2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			table := parse(t, "run,workload,machine,knob_x,epoch\n"+tc.text, evaluate.Curves)
			var got []int
			for _, run := range evaluate.Runs(table.Rows) {
				got = append(got, run[0].Line)
			}
			if !cmp.Equal(got, tc.want) {
				t.Errorf("runs begin on lines %v, want %v", got, tc.want)
			}
		})
	}
}

func TestInputsAreJobsOfTheirOwn(t *testing.T) {
	t.Parallel()
	table := parse(t, "workload,machine,input,seconds\na,m,1,1\na,m,2,9\na,m,1,1\n", evaluate.Trials)
	if jobs := table.Jobs(); len(jobs) != 2 || jobs[0].Name() != "a/1" || len(jobs[0].Rows) != 2 || jobs[1].Input != "2" {
		t.Errorf("%+v", jobs)
	}
	if all := table.Groups(); len(all) != 1 || all[0].Name() != "a" {
		t.Errorf("%+v", all)
	}
}

func TestTheColumnsShowTheFormat(t *testing.T) {
	t.Parallel()
	for want, text := range map[evaluate.Format]string{
		evaluate.Trials:      "workload,machine,run,seconds\n1,1,1,1\n",
		evaluate.Curves:      "run,workload,machine,epoch\n1,1,1,1\n",
		evaluate.Samples:     "workload,run,machine,t_seconds\n1,1,1,1\n",
		evaluate.Adaptations: "run,workload,scenario,epoch,seconds,action\n1,1,1,1,1,1\n",
	} {
		if got := parse(t, text, evaluate.Records); got.Format != want {
			t.Errorf("%q: %s, want %s", text, got.Format, want)
		}
	}
	if _, err := evaluate.Read("nowhere.csv", evaluate.Records); !errors.Is(err, evaluate.ErrInvalid) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestAnOutcomeThatStandsNowAndThenIsNotBroken(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, qualities string // of the epochs, - where there is none
		cadence         int
		last            int
		broke           bool
	}{
		{"at each epoch", "1 1 1", 0, 2, false},
		{"at each third", "- - 1 - - 1 - -", 2, 5, false},
		{"longer without than ever before", "1 - 1 - -", 1, 2, true},
		{"longer than its own, not than is usual", "1 1 -", 1, 1, false},
		{"never", "- -", 5, -1, true},
	} {
		text := "run,workload,machine,epoch,quality\n"
		for i, q := range strings.Fields(tc.qualities) {
			text += "0,a,m," + strconv.Itoa(i+1) + "," + strings.Trim(q, "-") + "\n"
		}
		if last, broke := evaluate.Last(parse(t, text, evaluate.Curves).Rows, "quality", tc.cadence); last != tc.last || broke != tc.broke {
			t.Errorf("%s: last %d, broke %t; want %d, %t", tc.name, last, broke, tc.last, tc.broke)
		}
	}
	runs := [][]evaluate.Row{}
	for _, q := range []string{"1,,1", ",1,", "1,1,1"} {
		var text strings.Builder
		text.WriteString("run,workload,machine,epoch,quality\n")
		for i, v := range strings.Split(q, ",") {
			text.WriteString("0,a,m," + strconv.Itoa(i+1) + "," + v + "\n")
		}
		runs = append(runs, parse(t, text.String(), evaluate.Curves).Rows)
	}
	if got := evaluate.Cadence(runs, "quality"); got != 1 {
		t.Errorf("cadence %d, want 1", got)
	}
}

func TestQualitiesMayBePercentages(t *testing.T) {
	t.Parallel()
	for want, text := range map[float64]string{1: "a,m,0.5\na,m,1\n", 100: "a,m,0.5\na,m,98.7\n", 0: "a,m,101\n"} {
		if got, ok := evaluate.Whole(parse(t, "workload,machine,quality\n"+text, evaluate.Trials).Rows); got != want || ok != (want > 0) {
			t.Errorf("%q: %g, %t; want %g", text, got, ok, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("run,workload,machine,epoch\n\"a\"\"\",b,c,1\n"))
	f.Add([]byte("workload,machine, failed ,x,knob_y\n a,b,TRUE,inf,nan\n"))
	f.Add([]byte{0x1f, 0x8b, 0})
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := evaluate.Parse("x.csv", bytes.NewReader(text), evaluate.Trials)
		if err != nil {
			if !errors.Is(err, evaluate.ErrInvalid) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		var first, second bytes.Buffer
		if err := evaluate.Write(&first, table); err != nil {
			t.Fatal(err)
		}
		again, err := evaluate.Parse("x.csv", bytes.NewReader(first.Bytes()), evaluate.Trials)
		if err != nil {
			t.Fatalf("what was written is not read back: %v\n%s", err, first.String())
		}
		if err := evaluate.Write(&second, again); err != nil || first.String() != second.String() {
			t.Errorf("%v\n%s\n%s", err, first.String(), second.String())
		}
	})
}
