package evaluate

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/tuning"
)

// Read reads the file at path; see Parse.
func Read(path string, formats ...Format) (Table, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return Table{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	return Parse(path, file, formats...)
}

// Parse reads a table in the first of several formats that its columns fit, and in the first
// of all where they fit none: the error then says what is missing. Errors contain name.
func Parse(name string, in io.Reader, formats ...Format) (Table, error) {
	in, err := Unzipped(name, in)
	if err != nil {
		return Table{}, err
	}
	p := &parser{csv: csv.NewReader(in), table: Table{File: name, Format: formats[0]}}
	p.csv.ReuseRecord = true
	if err := p.header(formats); err != nil {
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
	p.table.markStandIns()
	return p.table, nil
}

// fits returns the format that matches the columns.
func (t Table) fits() Format {
	switch {
	case t.Has("t_seconds"):
		return Samples
	case t.Has("epoch") && t.Has("scenario"):
		return Adaptations
	case t.Has("epoch") && t.Has("run"):
		return Curves
	}
	return Trials
}

// Unzipped unpacks what is gzip and returns anything else as it is; errors contain name.
func Unzipped(name string, in io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(in)
	if magic, _ := buffered.Peek(2); len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
		return buffered, nil
	}
	out, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
	}
	return out, nil
}

type parser struct {
	csv   *csv.Reader
	table Table
	holds []holds // by column
}

func (p *parser) at(line, column int, format string, args ...any) error {
	return fmt.Errorf("%w: %s:%d:%d: %s", ErrInvalid, p.table.File, line, column, fmt.Sprintf(format, args...))
}

// broken puts what encoding/csv says about a line into our form.
func (p *parser) broken(err error) error {
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return p.at(bad.Line, max(bad.Column, 1), "%v", bad.Err)
	}
	return fmt.Errorf("%w: %s: %w", ErrInvalid, p.table.File, err)
}

func (p *parser) header(formats []Format) error {
	cells, err := p.csv.Read()
	if errors.Is(err, io.EOF) {
		return p.at(1, 1, "it is empty: want a header row of %s", p.table.Format)
	}
	if err != nil {
		return p.broken(err)
	}
	for i, c := range cells {
		_, column := p.csv.FieldPos(i)
		c = strings.TrimSpace(strings.TrimPrefix(c, "\ufeff"))
		if c == "" || c == prefix {
			return p.at(1, column, "a column without a name")
		}
		if slices.Contains(p.table.Columns, c) {
			return p.at(1, column, "column %q stands twice", c)
		}
		p.table.Columns, p.holds = append(p.table.Columns, c), append(p.holds, holdsOf(c))
	}
	if f := p.table.fits(); slices.Contains(formats, f) || slices.Contains(formats, Records) {
		p.table.Format = f
	}
	needed := needed()[p.table.Format]
	if c, lacks := tuning.First(needed, func(c string) bool { return !p.table.Has(c) }); lacks {
		return p.at(1, 1, "column %q is missing: a file of %s has at least %s", c, p.table.Format, strings.Join(needed, ", "))
	}
	return nil
}

func (p *parser) row() (Row, error) {
	cells, err := p.csv.Read()
	if err != nil {
		return Row{}, p.broken(err)
	}
	line, _ := p.csv.FieldPos(0)
	r := Row{Line: line, Knobs: tuning.Settings{}, Cells: make(tuning.Settings, len(cells))}
	for i, cell := range cells {
		cell = strings.TrimSpace(cell)
		if cell == "" || p.holds[i] != words && slices.Contains(missing(), cell) {
			continue
		}
		cell = strings.Clone(cell) // the reader's memory is used again
		name := p.table.Columns[i]
		if knob, is := strings.CutPrefix(name, prefix); is {
			r.Knobs[knob] = tuning.ParseValue(cell)
		} else if !r.take(name, cell, p.holds[i]) {
			line, column := p.csv.FieldPos(i)
			return Row{}, p.at(line, column, "%s is %q: want a number, or nothing where it is missing", name, cell)
		}
	}
	r.Workload, r.Machine, r.Run = r.Text("workload"), r.Text("machine"), r.Text("run")
	if r.Workload == "" {
		return Row{}, p.at(line, 1, "the workload is missing")
	}
	if p.table.Format != Trials && r.Run == "" {
		return Row{}, p.at(line, 1, "the run is missing")
	}
	return r, nil
}

// take keeps a cell. An infinite number is missing. False: it is a word instead of a number.
func (r *Row) take(column, cell string, holds holds) bool {
	v, err := strconv.ParseFloat(cell, 64)
	switch {
	case holds == words:
		r.Cells[column] = tuning.Word(cell)
	case err == nil && tuning.Finite(v):
		r.Cells[column] = tuning.Number(v)
	case !tuning.Finite(v): // of any spelling, or too large
	case holds == anything:
		r.Cells[column] = tuning.Word(cell)
	case holds == numbersOrFlags && strings.EqualFold(cell, "true"):
		r.Cells[column] = tuning.Number(1)
	case holds == numbersOrFlags && strings.EqualFold(cell, "false"):
		r.Cells[column] = tuning.Number(0)
	default:
		return false
	}
	return true
}

// markStandIns finds the rows whose relative_speed stands for a run that did not fit.
func (t *Table) markStandIns() {
	least := map[[2]string]float64{}
	for _, r := range t.Rows {
		key := [2]string{r.Workload, r.Machine}
		if m := r.Knobs["memory_gib"]; m.IsNumber() {
			if v, ok := least[key]; !ok || m.Float() < v {
				least[key] = m.Float()
			}
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		v, ok := r.Float("relative_speed")
		r.standIn = ok && v == Placeholder && r.Knobs["memory_gib"].Float() <= least[[2]string{r.Workload, r.Machine}]
	}
}

// Set holds the tables that an evaluation reads.
type Set struct {
	Trials  []Table
	Samples []Table
	Curves  []Table // or adaptations
}

// Files names the tables.
func (s Set) Files() []string {
	return tuning.Each(slices.Concat(s.Trials, s.Samples, s.Curves), func(t Table) string { return t.File })
}
