package evaluate

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
)

// Format is one of the kinds of tables.
type Format string

// The formats.
const (
	Trials      Format = "trials"
	Curves      Format = "curves"
	Samples     Format = "samples"
	Adaptations Format = "adaptations"
	Records     Format = "records" // any of them, as the columns show
)

// Placeholder is the relative_speed that stands for a run that did not fit the memory: it
// was not measured.
const Placeholder = 0.1

// ErrInvalid marks a file that is not in the format asked for.
var ErrInvalid = errors.New("invalid records")

// prefix begins the names of columns that hold settings.
const prefix = "knob_"

// holds is what a column may hold.
type holds int

const (
	anything holds = iota // a number where it reads as one, else a word
	words                 // even where these look like numbers
	numbers
	numbersOrFlags // true and false, too
)

// holdsOf says it for the columns that the formats name. Any other may hold anything.
func holdsOf(column string) holds {
	switch column {
	case "failed", "disturbed":
		return numbersOrFlags
	case "workload", "machine", "run", "scenario", "action", "optimizer":
		return words
	case "epochs", "epoch_seconds", "seconds", "joules", "watts", "quality", "samples_per_second", "repeat", "epoch", "loss", "t_seconds",
		"train_quality", "budget_seconds", "start_seconds", "relative_speed", "node_cores", "cpu_seconds":
		return numbers
	}
	return anything
}

// needed are the columns without which a table is not of a format.
func needed() map[Format][]string {
	return map[Format][]string{
		Trials:      {"workload", "machine"},
		Curves:      {"run", "workload", "machine", "epoch"},
		Samples:     {"workload", "run", "machine", "t_seconds"},
		Adaptations: {"run", "workload", "scenario", "epoch", "seconds", "action"},
	}
}

// missing are the words for an empty cell.
func missing() []string { return []string{"", "NaN", "nan", "NA", "N/A", "null"} }

// Row is one line of a table.
type Row struct {
	Line     int // in the file, from 1
	Workload string
	Machine  string          // empty where the format has none
	Run      string          // empty where the format has none
	Knobs    tuning.Settings // by name without knob_; a missing name: the cell is empty
	Cells    tuning.Settings // of the other columns, likewise
	standIn  bool            // its relative_speed stands for a run that did not fit the memory
}

// Float returns the number of a column. False: the cell is empty, or there is no such
// column.
func (r Row) Float(column string) (float64, bool) {
	v := r.Cells[column]
	return v.Float(), v.IsNumber()
}

// Text returns what a column has, empty where it is missing.
func (r Row) Text(column string) string { return r.Cells[column].String() }

// Input is which of its workload's inputs a run had, as the table gives it; empty where
// it gives none.
func (r Row) Input() string { return r.Text("input") }

// Failed reports whether the run of a row failed: by its column, or since its
// relative_speed is the Placeholder at the least memory of its workload.
func (r Row) Failed() bool { return r.Cells["failed"].Float() != 0 || r.standIn }

// Outcome is what came out of a run that did not fail: a number above 0. False: it
// failed, or the column does not tell.
func (r Row) Outcome(column string) (float64, bool) {
	v, ok := r.Float(column)
	if !ok || !(v > 0) || r.Failed() {
		return 0, false
	}
	return v, true
}

// Set gives a column a number.
func (r *Row) Set(column string, v float64) {
	if r.Cells == nil {
		r.Cells = tuning.Settings{}
	}
	r.Cells[column] = tuning.Number(v)
}

// Table is a file of records.
type Table struct {
	File    string
	Format  Format
	Columns []string // as in the header, knobs with their knob_
	Rows    []Row
}

// Has reports whether the table has a column.
func (t Table) Has(column string) bool { return slices.Contains(t.Columns, column) }

// Knobs are the names of the settings, without knob_, in the order of the columns.
func (t Table) Knobs() []string {
	var out []string
	for _, c := range t.Columns {
		if name, ok := strings.CutPrefix(c, prefix); ok {
			out = append(out, name)
		}
	}
	return out
}

// Write writes a table that Parse reads back as it is: numbers with as many digits as
// they need, missing ones as empty cells.
func Write(out io.Writer, t Table) error {
	lines := [][]string{t.Columns}
	for _, r := range t.Rows {
		lines = append(lines, tuning.Each(t.Columns, r.cell))
	}
	if err := csv.NewWriter(out).WriteAll(lines); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	return nil
}

func (r Row) cell(column string) string {
	if name, ok := strings.CutPrefix(column, prefix); ok {
		return r.Knobs[name].String()
	}
	switch column {
	case "workload":
		return r.Workload
	case "machine":
		return r.Machine
	case "run":
		return r.Run
	}
	return r.Text(column)
}
