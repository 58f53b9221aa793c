package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

// federated is a Slurm whose sbatch names the cluster that it submitted to.
type federated struct {
	*fake
	cluster string
}

func (f federated) Run(ctx context.Context, c command.Call) (command.Output, error) {
	out, err := f.fake.Run(ctx, c)
	if c.Name == "sbatch" && err == nil {
		out.Stdout = fmt.Appendf(nil, "%s;%s\n", strings.TrimSpace(string(out.Stdout)), f.cluster)
	}
	return out, err
}

func TestAJobOfAnotherClusterIsNeitherTakenForOneHereNorSubmittedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, conf, cluster string
		want                error
	}{
		{"of this cluster", "ClusterName = here\n", "here", nil},
		{"of another", "ClusterName = here\n", "there", driver.ErrUnknown},
		{"where this one has no name", "", "there", driver.ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(cfg *slurm.Config) {
				cfg.Quiet = time.Nanosecond
			})
			r.f.conf += c.conf
			if err := r.d.Close(); err != nil {
				t.Fatal(err)
			}
			r.cfg.Commands = federated{r.f, c.cluster}
			r.open(t)
			for range 2 {
				job, err := r.d.Start(t.Context(), "request", spec())
				if !errors.Is(err, c.want) || c.want != nil && (job.ID != "" || !strings.Contains(err.Error(), "there")) {
					t.Errorf("Start: job %q, %v; want %v", job.ID, err, c.want)
				}
				r.f.with("1", func(j *fakeJob) { j.comment = "" }) // it is not found by its marker here
			}
			if n := r.f.count("sbatch"); n != 1 {
				t.Errorf("%d submissions, want one", n)
			}
			file, err := detect.For("slurm")("a.sh", spec().Source, nil)
			if err != nil {
				t.Fatal(err)
			}
			if id, err := slurm.Submit(t.Context(), federated{r.f, c.cluster}, file, spec()); !errors.Is(err, c.want) || (id == "") != (c.want != nil) {
				t.Errorf("Submit: job %q, %v; want %v", id, err, c.want)
			}
		})
	}
}

func TestANameOfAClusterIsRefusedBeforeAnythingIsSubmitted(t *testing.T) {
	t.Parallel()
	const plain = "#!/bin/sh\ntrue\n"
	for _, c := range []struct {
		name, script, want string
		env                map[string]string
	}{
		{"by an option", "#!/bin/sh\n#SBATCH -c 1 --clusters=a,b\ntrue\n", "a.sh:2:14: clusters are named", nil},
		{"by its letter", "#!/bin/sh\n#SBATCH -M here\ntrue\n", "a.sh:2:9: clusters are named", nil},
		{"by a variable", plain, `SBATCH_CLUSTERS names clusters ("there")`, map[string]string{"SBATCH_CLUSTERS": "there"}},
		{"by the older one", plain, "SLURM_CLUSTERS names clusters", map[string]string{"SLURM_CLUSTERS": "there"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(cfg *slurm.Config) { cfg.Parse = detect.For("slurm") })
			s := driver.Spec{Filename: "a.sh", Source: []byte(c.script), Env: c.env}
			file, err := detect.For("slurm")(s.Filename, s.Source, nil)
			if err != nil {
				t.Fatalf("a job that runs already may have it: %v", err)
			}
			_, err = r.d.Start(t.Context(), "request", s)
			if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Start: %v, want %v with %q", err, driver.ErrInvalid, c.want)
			}
			_, err = slurm.Submit(t.Context(), r.f, file, s)
			if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Submit: %v, want %v with %q", err, driver.ErrInvalid, c.want)
			}
			if n := r.f.count("sbatch"); n != 0 {
				t.Errorf("%d submissions, want none", n)
			}
		})
	}
}

func TestWhatItsUserAnswersHimselfIsNotSaidForHim(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		env          map[string]string
		has, lacks   []string
	}{
		{
			"nothing", "#!/bin/sh\n#SBATCH -p main\n#TUNE mode=apply\ntrue\n", nil,
			[]string{"--open-mode=append", "--job-name=a.sh", "--partition=main"},
			[]string{"--requeue"},
		},
		{"in the script", "#!/bin/sh\n#SBATCH --open-mode=truncate --requeue\ntrue\n", nil, []string{"--job-name=a.sh"}, []string{"--open-mode", "--requeue"}},
		{
			"in variables of sbatch", "#!/bin/sh\n#SBATCH -p main -J mine\ntrue\n",
			map[string]string{"SBATCH_PARTITION": "other", "SBATCH_JOB_NAME": "his", "SBATCH_OPEN_MODE": "truncate", "SBATCH_NO_REQUEUE": "1"},
			nil,
			[]string{"--open-mode", "--job-name", "--partition", "--requeue"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			s := driver.Spec{Filename: "a.sh", Source: []byte(c.script), Env: c.env}
			file, err := detect.For("slurm")(s.Filename, s.Source, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = slurm.Submit(t.Context(), r.f, file, s)
			submitted := r.f.last("sbatch")
			_, err2 := r.d.Start(t.Context(), "request", s)
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			for _, call := range []string{submitted, r.f.last("sbatch")} {
				for _, option := range c.has {
					if !strings.Contains(call, option) {
						t.Errorf("%q lacks %s", call, option)
					}
				}
				for _, option := range c.lacks {
					if strings.Contains(call, option) {
						t.Errorf("%q has %s", call, option)
					}
				}
			}
		})
	}
}

func TestAPartitionOfAVariableIsJudgedToo(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *slurm.Config) { c.Partitions = []string{"main", "long"} })
	s := spec()
	for _, partitions := range []string{"other", "main,other"} {
		s.Env = map[string]string{"SBATCH_PARTITION": partitions}
		if _, err := r.d.Start(t.Context(), "request", s); !errors.Is(err, driver.ErrDenied) || r.f.count("sbatch") != 0 {
			t.Errorf("Start in %s: %v after %d submissions, want %v", partitions, err, r.f.count("sbatch"), driver.ErrDenied)
		}
	}
	s.Env = map[string]string{"SBATCH_PARTITION": "long,main"}
	if _, err := r.d.Start(t.Context(), "request", s); err != nil {
		t.Errorf("Start in two that are watched: %v", err)
	}
}

// surrounded keeps the environment that sbatch was given.
type surrounded struct {
	*fake
	env []string
}

func (l *surrounded) Run(ctx context.Context, c command.Call) (command.Output, error) {
	if c.Name == "sbatch" {
		l.env = c.Env
	}
	return l.fake.Run(ctx, c)
}

func TestAJobThatAJobSubmitsHasNothingOfItsMark(t *testing.T) {
	for name, value := range map[string]string{"SLURM_JOB_ID": "5", "PITCHPIPE_JOB": "2:live:RATE=#", "PITCHPIPE_SETTINGS": "/srv/5.json", "LOADED": "yes"} {
		t.Setenv(name, value)
	}
	for script, want := range map[string][]string{
		"#!/bin/sh\ntrue\n": nil,
		"#!/bin/sh\n#TUNE mode=apply\n#TUNE knob threads env=OMP_NUM_THREADS values=1,2\ntrue\n": {"PITCHPIPE_JOB=2::OMP_NUM_THREADS=#"},
	} {
		l := &surrounded{fake: newFake(t)}
		file, err := detect.For("slurm")("a.sh", []byte(script), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := slurm.Submit(t.Context(), l, file, driver.Spec{Filename: "a.sh", Source: []byte(script)}); err != nil {
			t.Fatal(err)
		}
		ours := slices.DeleteFunc(slices.Clone(l.env), func(kv string) bool { return !strings.HasPrefix(kv, "PITCHPIPE_") || kv == "PITCHPIPE_REQUIRE_TOOLS=1" })
		if !slices.Equal(ours, want) || !slices.Contains(l.env, "LOADED=yes") {
			t.Errorf("%q gets %q of %q, want %q", script, ours, l.env, want)
		}
	}
}
