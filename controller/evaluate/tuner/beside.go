package tuner

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/tuning"
)

// pair names a workload and a machine.
type pair struct{ workload, machine string }

// reference is what another tuner was published to reach.
type reference struct {
	recurrences      int      // 0: not told
	cumulativeEnergy *float64 // relative to the default, as all of these; nil: not told
	finalEnergy      *float64
	finalTime        *float64
}

// beside is what stands beside a file of trials.
type beside struct {
	maxEpochs  map[pair]float64
	defaults   map[pair]tuning.Settings
	references map[pair]reference
}

// readBeside reads targets.csv and reference.csv from the folder of a file, where they
// are there.
func readBeside(file string) (beside, error) {
	b := beside{map[pair]float64{}, map[pair]tuning.Settings{}, map[pair]reference{}}
	folder := filepath.Dir(file)
	err := readRows(filepath.Join(folder, "targets.csv"), func(row *row) error {
		b.maxEpochs[row.pair()] = row.number("max_epochs")
		own := tuning.Settings{}
		for column, cell := range row.cells {
			if name, ok := strings.CutPrefix(column, "default_knob_"); ok && cell != "" {
				own[name] = tuning.ParseValue(cell)
			}
		}
		if len(own) > 0 {
			b.defaults[row.pair()] = own
		}
		return row.err
	})
	if err != nil {
		return beside{}, err
	}
	err = readRows(filepath.Join(folder, "reference.csv"), func(row *row) error {
		b.references[row.pair()] = reference{
			int(row.number("recurrences")), row.told(row.column("_cumulative_energy_ratio")),
			row.told(row.column("_last5_eta_ratio")), row.told(row.column("_last5_tta_ratio")),
		}
		return row.err
	})
	return b, err
}

// row is one line of a table of mixed columns.
type row struct {
	file  string
	line  int
	cells map[string]string
	err   error
}

func (r *row) pair() pair { return pair{r.cells["workload"], r.cells["machine"]} }

// column is the name of the column with an ending; before it stands whose numbers they are.
func (r *row) column(ending string) string {
	for _, name := range slices.Sorted(maps.Keys(r.cells)) {
		if strings.HasSuffix(name, ending) {
			return name
		}
	}
	return ending
}

// number is that of a column, 0 where it is missing or empty.
func (r *row) number(column string) float64 {
	if r.cells[column] == "" {
		return 0
	}
	v, err := strconv.ParseFloat(r.cells[column], 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: %s:%d:1: %s is %q: want a number", records.ErrInvalid, r.file, r.line, column, r.cells[column])
	}
	return v
}

// told is the number of a column that is above 0, nil where it is missing or empty.
func (r *row) told(column string) *float64 {
	if v := r.number(column); v > 0 && !math.IsInf(v, 1) {
		return &v
	}
	return nil
}

func readRows(path string, each func(*row) error) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", records.ErrInvalid, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	return parseRows(path, file, each)
}

func parseRows(path string, in io.Reader, each func(*row) error) error {
	lines, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", records.ErrInvalid, path, err)
	}
	for i, line := range lines {
		if i == 0 {
			continue
		}
		r := &row{file: path, line: i + 1, cells: map[string]string{}}
		for j, name := range lines[0] {
			r.cells[name] = line[j]
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}
