package jobfile_test

import (
	"errors"
	"testing"

	"pitchpipe/driver/jobfile"
)

func TestErrorsComeInTheOrderOfTheirPlaces(t *testing.T) {
	t.Parallel()
	at := func(line, column int) jobfile.Pos { return jobfile.Pos{Filename: "f", Line: line, Column: column} }
	faults := jobfile.Errors{{Pos: at(2, 1), Found: "c"}, {Pos: at(1, 9), Found: "b", Want: "x"}, {Pos: at(1, 9), Found: "a"}}
	err := faults.Err()
	if want := "f:1:9: a\nf:1:9: b; x\nf:2:1: c"; err == nil || err.Error() != want {
		t.Errorf("error %v, want\n%s", err, want)
	}
	var back jobfile.Errors
	if !errors.As(err, &back) || len(back) != 3 {
		t.Errorf("error %T, want jobfile.Errors of three", err)
	}
	if faults[0].Found != "c" {
		t.Error("the faults themselves were moved")
	}
	if err := (jobfile.Errors{}).Err(); err != nil {
		t.Errorf("no faults are the error %v", err)
	}
}
