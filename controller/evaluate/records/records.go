package records

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
)

// Placeholder is the relative_speed that stands for a run that did not fit the memory: it
// was not measured.
const Placeholder = 0.1

// ErrInvalid marks a file that is not in the format asked for.
var ErrInvalid = errors.New("invalid records")

// prefix begins the names of columns that hold settings.
const prefix = "knob_"

// texts are the columns that hold words; every other one holds numbers.
func texts() []string {
	return []string{"workload", "machine", "run", "scenario", "action", "optimizer"}
}

// needed are the columns without which a table is not of a format.
func needed(f Format) []string {
	switch f {
	case Trials:
		return []string{"workload", "machine"}
	case Curves:
		return []string{"run", "workload", "machine", "epoch"}
	case Samples:
		return []string{"workload", "run", "machine", "t_seconds"}
	case Adaptations:
		return []string{"run", "workload", "scenario", "epoch", "seconds", "action"}
	}
	return nil
}

// Row is one line of a table.
type Row struct {
	Line     int // in the file, from 1
	Workload string
	Machine  string          // empty where the format has none
	Run      string          // empty where the format has none
	Knobs    tuning.Settings // by name without knob_; a missing name: the cell is empty
	numbers  map[string]float64
	words    map[string]string
}

// Float returns the number of a column. False: the cell is empty, or there is no such
// column.
func (r Row) Float(column string) (float64, bool) {
	v, ok := r.numbers[column]
	return v, ok
}

// Text returns the word of a column, empty where it is missing.
func (r Row) Text(column string) string { return r.words[column] }

// Set gives a column a number.
func (r *Row) Set(column string, v float64) {
	if r.numbers == nil {
		r.numbers = map[string]float64{}
	}
	r.numbers[column] = v
}

// Table is a file of records.
type Table struct {
	File    string
	Format  Format
	Columns []string // as in the header, knobs with their knob_
	Rows    []Row
}

// Has tells whether the table has a column.
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

// Group are the rows of one workload on one machine, in the order of the file.
type Group struct {
	Workload, Machine string
	Rows              []Row
}

// Groups splits a table by workload and machine, in the order of the first row of each.
func (t Table) Groups() []Group {
	var out []Group
	at := map[[2]string]int{}
	for _, r := range t.Rows {
		key := [2]string{r.Workload, r.Machine}
		i, ok := at[key]
		if !ok {
			i, at[key] = len(out), len(out)
			out = append(out, Group{Workload: r.Workload, Machine: r.Machine})
		}
		out[i].Rows = append(out[i].Rows, r)
	}
	return out
}

// Runs splits rows by run, in the order of the first row of each.
func Runs(rows []Row) [][]Row {
	var out [][]Row
	at := map[string]int{}
	for _, r := range rows {
		i, ok := at[r.Run]
		if !ok {
			i, at[r.Run] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

// Read reads the file at path.
func Read(path string, f Format) (Table, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return Table{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	return Parse(path, file, f)
}

// Parse reads a table; name stands in its errors.
func Parse(name string, in io.Reader, f Format) (Table, error) {
	buffered := bufio.NewReader(in)
	in = buffered
	if magic, _ := buffered.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return Table{}, fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
		}
		in = unzipped
	}
	p := parser{name: name, csv: csv.NewReader(in), table: Table{File: name, Format: f}}
	p.csv.ReuseRecord = true
	if err := p.header(); err != nil {
		return Table{}, err
	}
	for {
		row, err := p.row()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Table{}, err
		}
		p.table.Rows = append(p.table.Rows, row)
	}
	if len(p.table.Rows) == 0 {
		return Table{}, fmt.Errorf("%w: %s: it has a header and no rows", ErrInvalid, name)
	}
	return p.table, nil
}

type parser struct {
	name  string
	csv   *csv.Reader
	table Table
	knobs []string // by column, empty: not a setting
	words []bool   // by column
}

func (p *parser) at(line, column int, format string, args ...any) error {
	return fmt.Errorf("%w: %s:%d:%d: %s", ErrInvalid, p.name, line, column, fmt.Sprintf(format, args...))
}

// broken puts what encoding/csv says about a line into our form.
func (p *parser) broken(err error) error {
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return p.at(bad.Line, max(bad.Column, 1), "%v", bad.Err)
	}
	return fmt.Errorf("%w: %s: %w", ErrInvalid, p.name, err)
}

func (p *parser) header() error {
	cells, err := p.csv.Read()
	if errors.Is(err, io.EOF) {
		return p.at(1, 1, "it is empty: want a header row of %s", p.table.Format)
	}
	if err != nil {
		return p.broken(err)
	}
	for i, c := range cells {
		_, column := p.csv.FieldPos(i)
		c = strings.TrimPrefix(c, "\ufeff")
		if c == "" || c == prefix {
			return p.at(1, column, "a column without a name")
		}
		if slices.Contains(p.table.Columns, c) {
			return p.at(1, column, "column %q stands twice", c)
		}
		p.table.Columns = append(p.table.Columns, c)
		name, _ := strings.CutPrefix(c, prefix)
		if name == c {
			name = ""
		}
		p.knobs = append(p.knobs, name)
		p.words = append(p.words, slices.Contains(texts(), c))
	}
	for _, c := range needed(p.table.Format) {
		if !p.table.Has(c) {
			return p.at(1, 1, "column %q is missing: a file of %s has at least %s", c, p.table.Format, strings.Join(needed(p.table.Format), ", "))
		}
	}
	return nil
}

func (p *parser) row() (Row, error) {
	cells, err := p.csv.Read()
	if errors.Is(err, io.EOF) {
		return Row{}, io.EOF
	}
	if err != nil {
		return Row{}, p.broken(err)
	}
	line, _ := p.csv.FieldPos(0)
	r := Row{Line: line, Knobs: tuning.Settings{}, numbers: make(map[string]float64, len(cells)), words: map[string]string{}}
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		cell = strings.Clone(cell) // the reader's memory is used again
		switch {
		case p.knobs[i] != "":
			r.Knobs[p.knobs[i]] = tuning.ParseValue(cell)
		case p.words[i]:
			r.words[p.table.Columns[i]] = cell
		default:
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				line, column := p.csv.FieldPos(i)
				return Row{}, p.at(line, column, "%s is %q: want a finite number, or nothing where it is missing", p.table.Columns[i], cell)
			}
			r.numbers[p.table.Columns[i]] = v
		}
	}
	r.Workload, r.Machine, r.Run = r.words["workload"], r.words["machine"], r.words["run"]
	if r.Workload == "" {
		return Row{}, p.at(line, 1, "the workload is missing")
	}
	if p.table.Format != Trials && r.Run == "" {
		return Row{}, p.at(line, 1, "the run is missing")
	}
	return r, nil
}

// Write writes a table that Parse reads back as it is: numbers with as many digits as
// they need, missing ones as empty cells.
func Write(out io.Writer, t Table) error {
	w := csv.NewWriter(out)
	if err := w.Write(t.Columns); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	for _, r := range t.Rows {
		cells := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			cells[i] = r.cell(c)
		}
		if err := w.Write(cells); err != nil {
			return fmt.Errorf("write records: %w", err)
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
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
	if v, ok := r.numbers[column]; ok {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return r.words[column]
}
