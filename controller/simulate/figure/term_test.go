package figure_test

import (
	"bytes"
	"strings"
	"testing"

	"pitchpipe/controller/durations"
	"pitchpipe/controller/report/picture"
	"pitchpipe/controller/simulate/figure"
)

func TestEachLevelHasABarAndAName(t *testing.T) {
	t.Parallel()
	term := durations.Term{Name: "user", Levels: []durations.Level{{Name: "ada", Jobs: 12, Factor: 4}, {Name: "bob", Jobs: 7, Factor: 0.5}}}
	for range 40 {
		term.Levels = append(term.Levels, durations.Level{Name: "other", Jobs: 1, Factor: 1})
	}
	sheet, err := figure.Term(term)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := sheet.Write(&b, picture.SVG); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Duration by user", "ada (12)", "bob (7)", ">x4<", ">x1<", "not drawn: 9."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in the picture", want)
		}
	}
	if _, err := figure.Term(durations.Term{Name: "none"}); err == nil {
		t.Error("a term without levels is drawn")
	}
}
