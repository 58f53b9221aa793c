package jobspecs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

// files lists every job file, so that none is left unread.
func files(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"slurm/*.sbatch", "nomad/*.hcl"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	// What only Nomad runs is read in nomad_test.go.
	all = slices.DeleteFunc(all, func(file string) bool { return slices.Contains(nomadOnly(), file) })
	if len(all) < 12 {
		t.Fatalf("found %d job files: %v", len(all), all)
	}
	return all
}

func parse(t *testing.T, file string, vars map[string]string) (*jobfile.Job, tuning.Policy) {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	job, err := detect.Parse(file, src, vars)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := stanza.Policy(job)
	if err != nil {
		t.Fatal(err)
	}
	return job, policy
}

func TestEveryJobFileIsUnderstood(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			job, policy := parse(t, file, nil)
			name, _, _ := strings.Cut(filepath.Base(file), ".")
			if job.Name != name || job.NoRequeue {
				t.Errorf("job %q, want %q; restarts refused: %t", job.Name, name, job.NoRequeue)
			}
			if policy.Mode != tuning.Apply {
				t.Errorf("mode %s", policy.Mode)
			}
			if c := policy.Checkpoint; c == nil || c.Signal != "SIGUSR1" || c.Exit != 85 || c.Grace > time.Minute {
				t.Errorf("checkpoint %+v", c)
			}
			knobs := []string{tuning.Cores, tuning.Threads, tuning.Memory}
			switch {
			case policy.Objective == tuning.Cost: // it asks for more cores than it uses
				knobs = knobs[:1]
			case policy.Search != nil:
				knobs = knobs[:2]
			}
			for _, knob := range knobs {
				if _, ok := policy.Knob(knob); !ok {
					t.Errorf("no knob %s", knob)
				}
			}
			if _, ok := policy.Knob("batch_size"); ok != (policy.Quality != nil) {
				t.Errorf("batches may change: %t, quality is guarded: %t", ok, policy.Quality != nil)
			}
		})
	}
}

func TestTheUsersOwnSettingsAreKnownAndAllowed(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			job, policy := parse(t, file, nil)
			own := stanza.Own(job, policy)
			want := tuning.Settings{tuning.Cores: tuning.Number(1), tuning.Threads: tuning.Number(1), tuning.Memory: tuning.Number(8 << 30)}
			switch {
			case policy.Objective == tuning.Cost: // it asks for more cores than it uses
				want = tuning.Settings{tuning.Cores: tuning.Number(2)}
			case policy.Search != nil:
				want[tuning.Memory] = tuning.Number(2 << 30)
				policy = policy.Trial() // what is searched has no value in the file
			}
			for name, v := range want {
				if own[name] != v {
					t.Errorf("own settings %v, want %v", own, want)
				}
			}
			for _, k := range policy.Knobs {
				v, ok := own[k.Name]
				if !ok || k.Follows == "" && !k.Allows(v) {
					t.Errorf("knob %s: own value %v, known %t, is not one that may be tried", k.Name, v, ok)
				}
			}
		})
	}
}

func TestTheProgressPatternReadsTheLinesOfThePrograms(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		_, policy := parse(t, file, nil)
		re := regexp.MustCompile(policy.Progress.Pattern)
		m := re.FindStringSubmatch("epoch 3/40 loss 1.25e-07 acc 0.9312")
		if m == nil {
			t.Errorf("%s: %q does not match", file, policy.Progress.Pattern)
			continue
		}
		for group, want := range map[string]string{"epoch": "3", "total": "40", "loss": "1.25e-07", "quality": "0.9312"} {
			if i := re.SubexpIndex(group); i < 0 || m[i] != want {
				t.Errorf("%s: group %s of %q", file, group, m)
			}
		}
		for _, other := range []string{"done after 40 epochs", "saved to x: 3 of 40 epochs are done", "resumed from x: 3 of 40 epochs are done"} {
			if re.MatchString(other) {
				t.Errorf("%s: %q is taken for progress", file, other)
			}
		}
	}
}

func TestTheSameWorkHasTheSameStanzaForBothSchedulers(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("nomad/*.hcl")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		if slices.Contains(nomadOnly(), file) {
			continue
		}
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		nomadJob, nomad := parse(t, file, nil)
		slurmJob, slurm := parse(t, filepath.Join("slurm", name+".sbatch"), nil)
		a, b := stanza.Own(nomadJob, nomad), stanza.Own(slurmJob, slurm)
		if diff := a.Diff(b); len(diff) > 0 {
			t.Errorf("%s: own settings differ in %v", name, diff)
		}
		for _, k := range nomad.Knobs {
			if other, ok := slurm.Knob(k.Name); !ok || !slices.Equal(k.Values, other.Values) || k.Min != other.Min || k.Max != other.Max || k.Env != other.Env {
				t.Errorf("%s: knob %s is %+v and %+v", name, k.Name, k, other)
			}
		}
	}
}

func TestAnotherInputIsTheSameCommandAndAnotherKindIsNot(t *testing.T) {
	t.Parallel()
	one, _ := parse(t, "nomad/dense.nomad.hcl", map[string]string{"input": "1"})
	two, _ := parse(t, "nomad/dense.nomad.hcl", map[string]string{"input": "2", "epochs": "20"})
	if one.Command == "" || one.Command != two.Command {
		t.Errorf("inputs 1 and 2 are the commands %q and %q", one.Command, two.Command)
	}
	seen := map[string]string{}
	for _, file := range files(t) {
		job, _ := parse(t, file, nil)
		key := string(job.Format) + job.Name + job.Command
		if was, ok := seen[key]; ok {
			t.Errorf("%s and %s are the same command", was, file)
		}
		seen[key] = file
	}
}
