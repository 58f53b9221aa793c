package records_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/tuning"
)

const small = `workload,machine,knob_cores,knob_schedule,seconds,joules,repeat
sp,xeon,1,static,10.5,,0
sp,xeon,2,,6,700,0
bt,xeon,2,static,3e2,1.5,1
sp,arm,2,static,7,8,0
`

func parse(t *testing.T, text string, f records.Format) records.Table {
	t.Helper()
	table, err := records.Parse("small.csv", strings.NewReader(text), f)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestATableKeepsWhatIsMissingApartFromZero(t *testing.T) {
	t.Parallel()
	table := parse(t, small, records.Trials)
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
	table := parse(t, small, records.Trials)
	var first, second bytes.Buffer
	if err := records.Write(&first, table); err != nil {
		t.Fatal(err)
	}
	if err := records.Write(&second, parse(t, first.String(), records.Trials)); err != nil || first.String() != second.String() {
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
	if table, err := records.Read(path, records.Trials); err != nil || len(table.Rows) != 4 {
		t.Errorf("%d rows: %v", len(table.Rows), err)
	}
}

func TestABadTableIsOneErrorWithItsPlace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		format     records.Format
		want       string
	}{
		{"an empty file", "", records.Trials, "x.csv:1:1: it is empty: want a header row of trials"},
		{"a header alone", "workload,machine\n", records.Trials, "x.csv: it has a header and no rows"},
		{"a missing column", "workload,knob_cores\na,1\n", records.Trials, `x.csv:1:1: column "machine" is missing: a file of trials has at least workload, machine`},
		{"a column twice", "workload,machine,seconds,seconds\na,b,1,2\n", records.Trials, `x.csv:1:26: column "seconds" stands twice`},
		{"a column without a name", "workload,machine,\na,b,1\n", records.Trials, "x.csv:1:18: a column without a name"},
		{"a word for a number", "workload,machine,seconds\na,b,1\na,b,fast\n", records.Trials, `x.csv:3:5: seconds is "fast": want a finite number, or nothing where it is missing`},
		{"a number that is none", "workload,machine,seconds\na,b,NaN\n", records.Trials, `x.csv:2:5: seconds is "NaN": want a finite number, or nothing where it is missing`},
		{"a short row", "workload,machine,seconds\na,b\n", records.Trials, "x.csv:2:1: wrong number of fields"},
		{"a quote that does not end", "workload,machine\n\"a,b\n", records.Trials, `x.csv:2:6: extraneous or missing " in quoted-field`},
		{"no workload", "workload,machine\n,b\n", records.Trials, "x.csv:2:1: the workload is missing"},
		{"no run", "run,workload,machine,epoch\n,a,b,1\n", records.Curves, "x.csv:2:1: the run is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := records.Parse("x.csv", strings.NewReader(tc.text), tc.format)
			if !errors.Is(err, records.ErrInvalid) || err.Error() != "invalid records: "+tc.want {
				t.Errorf("got  %v\nwant invalid records: %s", err, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("run,workload,machine,epoch\n\"a\"\"\",b,c,1\n"))
	f.Add([]byte{0x1f, 0x8b, 0})
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := records.Parse("x.csv", bytes.NewReader(text), records.Trials)
		if err != nil {
			if !errors.Is(err, records.ErrInvalid) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		var first, second bytes.Buffer
		if err := records.Write(&first, table); err != nil {
			t.Fatal(err)
		}
		again, err := records.Parse("x.csv", bytes.NewReader(first.Bytes()), records.Trials)
		if err != nil {
			t.Fatalf("what was written is not read back: %v\n%s", err, first.String())
		}
		if err := records.Write(&second, again); err != nil || first.String() != second.String() {
			t.Errorf("%v\n%s\n%s", err, first.String(), second.String())
		}
	})
}
