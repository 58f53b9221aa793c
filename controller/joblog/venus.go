package joblog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/evaluate"
)

// Models is what a folder such as that of Venus holds besides its jobs: the measurements and forecasts of
// others. What the folder lacks is empty.
type Models struct {
	Alone    map[string]Alone   // by kind
	Pairs    map[[2]string]Pair // by the kinds of two jobs that share a GPU
	EBM      map[string]float64 // forecasts of durations in seconds by the id of a job, below 0 possible
	Arrivals []Arrivals         // forecasts, by time
}

// Alone is a kind that has a GPU for itself.
type Alone struct {
	Sharing float64 // how much it suffers next to others: 0 little, 1, 2 much
	Memory  float64 // of the GPU, MiB
	Busy    float64 // share of the time in which the GPU computes
}

// Pair is the speed of two jobs that share a GPU, over that of each alone.
type Pair struct{ First, Second float64 }

// Arrivals is the forecast for the ten minutes from At on.
type Arrivals struct{ At, Jobs, GPUs float64 }

// venusOrigin is second 0 of the traces of Helios: 2020-04-01, as their simulator reads it.
const venusOrigin = 1585699200

const gpusOfANode = 8

// readVenus reads a folder like that of the Venus trace: *_jobs.csv, vc_config.csv, and what it holds of
// single_data.csv, colocate_info.csv, *_ebm*.csv and *_throughput_pred.csv, each gzip or not.
func readVenus(folder string) (Log, error) {
	l := Log{Origin: venusOrigin, Models: Models{
		Alone: map[string]Alone{}, Pairs: map[[2]string]Pair{}, EBM: map[string]float64{},
	}}
	m, files := &l.Models, os.DirFS(folder)
	kind, ours := []string{"model", "dataset", "batchsize", "amp"}, map[string]string{
		"job_id": "id", "user": "user", "vc": "group", "jobname": "name", "state": "state", "submit_time": "submit", "duration": "duration", "gpu_num": "gpus", "cpu_num": "cpus",
	}
	for _, part := range []struct {
		pattern string
		needed  bool
		read    func(io.Reader) error
	}{
		{"*_jobs.csv*", true, func(in io.Reader) error {
			return l.table(in, ours, kind, "job_id", "vc", "submit_time", "duration", "gpu_num")
		}},
		{"vc_config.csv*", true, func(in io.Reader) error {
			return rows(in, []string{""}, []string{"num"}, func(words []string, v []float64) {
				l.Clusters = append(l.Clusters, Cluster{Group: words[0], Nodes: int(min(max(v[0], 0), mostUnits)), GPUs: gpusOfANode})
			})
		}},
		{"single_data.csv*", false, func(in io.Reader) error {
			return rows(in, kind, []string{"label", "gmem", "gpu_util"}, func(words []string, v []float64) {
				m.Alone[strings.Join(words, "/")] = Alone{Sharing: v[0], Memory: v[1], Busy: v[2] / 100}
			})
		}},
		{"colocate_info.csv*", false, func(in io.Reader) error {
			of := []string{"model1", "dataset1", "batchsize1", "amp1", "model2", "dataset2", "batchsize2", "amp2"}
			return rows(in, of, []string{"speed1", "speed2"}, func(words []string, v []float64) {
				m.Pairs[[2]string{strings.Join(words[:4], "/"), strings.Join(words[4:], "/")}] = Pair{v[0], v[1]}
			})
		}},
		{"*_ebm*.csv*", false, func(in io.Reader) error {
			return rows(in, []string{"job_id"}, []string{"priority"}, func(words []string, v []float64) { m.EBM[words[0]] = v[0] })
		}},
		{"*_throughput_pred.csv*", false, func(in io.Reader) error {
			return rows(in, nil, []string{"time", "pred_gpu_job", "pred_gpu_num"}, func(_ []string, v []float64) {
				m.Arrivals = append(m.Arrivals, Arrivals{v[0] - venusOrigin, v[1], v[2]})
			})
		}},
	} {
		found, err := fs.Glob(files, part.pattern)
		switch {
		case err != nil:
		case len(found) > 1 || part.needed && len(found) == 0:
			err = fmt.Errorf("it has %d files %s: want one; the folder of the Venus trace is meant", len(found), part.pattern)
		case len(found) == 1:
			err = inFile(files, found[0], part.read)
		}
		if err != nil {
			return Log{}, fmt.Errorf("%w: %s: %w", ErrInvalid, folder, err)
		}
	}
	return l, l.usable(folder)
}

func inFile(files fs.FS, name string, read func(io.Reader) error) error {
	file, err := files.Open(name)
	if err != nil {
		return fmt.Errorf("%w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	in, err := evaluate.Unzipped(name, file)
	if err == nil {
		err = read(in)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// rows calls each with some columns of every row: words, and numbers or moments. One broken row is an error: these
// tables are models, and a model with a hole is another one.
func rows(in io.Reader, words, numbers []string, each func(words []string, numbers []float64)) error {
	columns := slices.Concat(words, numbers)
	at, cells, values := make([]int, len(columns)), make([]string, len(words)), make([]float64, len(numbers))
	var broken []error
	err := records(in, func(head []string) error {
		for i, c := range columns {
			if at[i] = slices.Index(head, c); at[i] < 0 {
				return fmt.Errorf("line 1: column %q is missing", c)
			}
		}
		return nil
	}, func(line int, row []string, err error) {
		for i := 0; i < len(columns) && err == nil; i++ {
			if i < len(words) {
				cells[i] = strings.Clone(row[at[i]])
			} else if values[i-len(words)], err = number(row[at[i]]); err != nil {
				err = fmt.Errorf("%s is %.40q: want a number", columns[i], row[at[i]])
			}
		}
		if err != nil {
			broken = append(broken, fmt.Errorf("line %d: %w", line, err))
			return
		}
		each(cells, values)
	})
	return errors.Join(append(broken[:min(len(broken), 10)], err)...) // more are likely alike
}

// number reads a number, or a moment as Unix time.
func number(text string) (float64, error) {
	if at, err := time.Parse(time.DateTime, text); err == nil {
		return float64(at.Unix()), nil
	}
	return strconv.ParseFloat(text, 64) //nolint:wrapcheck // the caller says what is wrong
}
