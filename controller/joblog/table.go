package joblog

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/tuning"
)

// columns are the column names of our CSV.
func columns() []string {
	return strings.Fields("id user group account name state kind submit start duration limit cpu_seconds nodes cpus gpus memory memory_used")
}

// fields take the cells of the columns: each is a *string, *float64, *int or *int64.
func (j *Job) fields() []any {
	return []any{
		&j.ID, &j.User, &j.Group, &j.Account, &j.Name, &j.State, &j.Kind, &j.Submit, &j.Start, &j.Duration, &j.Limit, &j.CPUSeconds,
		&j.Nodes, &j.CPUs, &j.GPUs, &j.Memory, &j.MemoryUsed,
	}
}

// set puts text into a field and returns what is wrong with it. Empty text changes nothing.
func set(name string, field any, text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	if word, is := field.(*string); is {
		*word = strings.Clone(text)
		return ""
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Sprintf("%s is %.40q: want a number", name, text)
	}
	if into, is := field.(*float64); is {
		*into = v
		return ""
	}
	if v != math.Trunc(v) || v < 0 || v > mostBytes {
		return fmt.Sprintf("%s is %.40s: want a whole number from 0", name, text)
	}
	switch into := field.(type) {
	case *int:
		*into = int(v)
	case *int64:
		*into = int64(v)
	}
	return ""
}

// records calls each with every row of a CSV after its header: line and the cells by column. A row that is not
// CSV has an error.
func records(in io.Reader, header func([]string) error, each func(line int, cells []string, err error)) error {
	r := csv.NewReader(in)
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	head, err := r.Read()
	if err != nil {
		return fmt.Errorf("line 1: %w: want a header", err)
	}
	head = slices.Clone(head)
	for i := range head {
		head[i] = strings.TrimSpace(strings.TrimPrefix(head[i], "\ufeff"))
	}
	if err := header(head); err != nil {
		return err
	}
	for {
		cells, err := r.Read()
		bad, isBad := errors.AsType[*csv.ParseError](err)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case isBad:
			for line := bad.StartLine; line <= bad.Line; line++ { // a quote that is not closed swallows the lines after it
				each(line, nil, bad.Err)
			}
			continue
		case err != nil:
			return fmt.Errorf("read: %w", err)
		}
		line, _ := r.FieldPos(0)
		if len(cells) != len(head) {
			err = fmt.Errorf("%w: it has %d cells and the header %d", csv.ErrFieldCount, len(cells), len(head))
		}
		each(line, cells, err)
	}
}

// table reads a CSV of jobs. The needed columns must be there, and hold something in each row; the columns of
// kind make the kind of a job. ours are our names of columns by those of the file; nil: they have our names.
func (l *Log) table(in io.Reader, ours map[string]string, kind []string, needed ...string) error {
	var head []string
	var at []int // of each cell among the columns of a job; -1: none
	return records(in, func(names []string) error {
		head = names
		if name, lacks := tuning.First(needed, func(name string) bool { return !slices.Contains(head, name) }); lacks {
			return fmt.Errorf("line 1: column %q is missing: want a header with at least %s", name, strings.Join(needed, ", "))
		}
		for i, name := range head {
			if slices.Contains(head[:i], name) {
				return fmt.Errorf("line 1: column %q is there twice", name)
			}
			if ours != nil {
				name = ours[name]
			}
			at = append(at, slices.Index(columns(), name))
		}
		if _, sized := tuning.First([]string{"cpus", "gpus", "nodes"}, func(name string) bool { return slices.Contains(head, name) }); ours == nil && !sized {
			return errors.New(`line 1: columns "cpus" and "gpus" are missing: want one of them at least`)
		}
		return nil
	}, func(line int, cells []string, err error) {
		j, why := Job{Line: line}, ""
		if err != nil {
			l.add(j, err.Error())
			return
		}
		parts, fields := make([]string, len(kind)), j.fields()
		for i, cell := range cells {
			if k := slices.Index(kind, head[i]); k >= 0 {
				parts[k] = cell
			}
			switch {
			case at[i] < 0:
			case strings.TrimSpace(cell) == "" && slices.Contains(needed, head[i]):
				why = head[i] + " is missing"
			default:
				why = cmp.Or(set(head[i], fields[at[i]], cell), why)
			}
		}
		if len(kind) > 0 {
			j.Kind = strings.Join(parts, "/")
		}
		l.add(j, why)
	})
}
