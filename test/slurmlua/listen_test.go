package slurmlua_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/server"
	"pitchpipe/exporter/window"
	"pitchpipe/test/sandbox"
	"pitchpipe/test/slurmcluster"
)

// stage is a running Slurm whose prolog starts a listener, and a node's exporter.
type stage struct {
	*live

	socket, listener string
	store            *window.Store
}

func newStage(t *testing.T, o slurmcluster.Options) *stage {
	t.Helper()
	own := newSite(t)
	s := &stage{socket: filepath.Join(own.root, "exporter.sock"), listener: filepath.Join(own.root, "pitchpipe")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	own.sh(t, fmt.Sprintf("install -m 755 %s pitchpipe; printf 'exporter=%s\nlistener=%s\n' >>conf", self, s.socket, s.listener))
	s.export(t)
	s.live = newLive(t, o, own)
	return s
}

// export runs the node's exporter.
func (s *stage) export(t *testing.T) {
	t.Helper()
	root := hostfs.Root{}
	machine := node.New(root)
	s.store = window.New(window.Config{})
	marks := sampler.New(sampler.Config{Interval: 250 * time.Millisecond, Discover: 50 * time.Millisecond, Cores: 2, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))},
		attrib.NewScanner(root, attrib.TrustNone), []collector.Collector{cgroup.New(root)}, machine, energy.NewModeller(energy.Model{Idle: 40, Max: 120}), s.store)
	serve, err := server.New(server.Config{Socket: s.socket}, func() api.Node { return api.Node{Hostname: "n1"} }, s.store, marks, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	sandbox.Beside(t, "the sampler", marks.Run)
	sandbox.Beside(t, "the exporter's server", serve.Run)
}

// submit submits a script with the mark that the plugin would have given it, as where a
// step's shell submits.
func (s *stage) submit(t *testing.T, script string, args ...string) string {
	t.Helper()
	id, seen := s.sbatch(t, script, []string{"PITCHPIPE_JOB=2::", "SLURM_STEP_ID=7"}, append(args, "--mem=512")...)
	if id == "" {
		t.Fatalf("sbatch: %s", seen)
	}
	return id
}

// let makes the file that a job waits for.
func (s *stage) let(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(s.home(name), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// reported is what an attempt has reported.
type reported struct {
	Epochs []int
	Saves  int
	Ended  bool
}

func (s *stage) reported(id string, attempt int) reported {
	w, ok := s.store.Window("slurm/"+id, attempt, 0, 0, func(api.Job) bool { return true })
	if !ok || w.Job.Attempt != attempt {
		return reported{}
	}
	out := reported{Saves: w.Job.Saves, Ended: w.Job.Ended}
	for _, sample := range w.Samples {
		if sample.Mark != nil {
			out.Epochs = append(out.Epochs, sample.Mark.Epoch)
		}
	}
	return out
}

func (s *stage) awaitReported(t *testing.T, id string, attempt int, want reported) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := os.ReadFile(s.home(id + ".out"))
			t.Logf("attempt %d reported %+v, want %+v; its output:\n%s", attempt, s.reported(id, attempt), want, out)
		}
	})
	s.await(t, "the exporter knows all that the attempt reported", func() bool { return cmp.Equal(want, s.reported(id, attempt)) })
}

// listeners are the processes that listen for a job.
func (s *stage) listeners(t *testing.T, id string) []int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, dir := range names {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.HasPrefix(line, []byte(s.listener+"\x00")) {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !bytes.Contains(environ, []byte("SLURM_JOB_ID="+id+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pid)
	}
	return out
}

// awaitListening waits until a listener of the job has its output open: what an
// attempt writes before may be lost.
func (s *stage) awaitListening(t *testing.T, id, output string) {
	t.Helper()
	s.await(t, "a listener has the output open", func() bool {
		for _, pid := range s.listeners(t, id) {
			names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			for _, name := range names {
				if to, err := os.Readlink(name); err == nil && to == output {
					return true
				}
			}
		}
		return false
	})
}

func (s *stage) ends(t *testing.T, id string) {
	t.Helper()
	s.await(t, "job "+id+" is gone", func() bool {
		out := s.as(t, "root", "squeue", "-h", "-t", "all", "-j", id, "-o", "%T")
		return out == "COMPLETED" || out == "FAILED" || out == "CANCELLED"
	})
	s.await(t, "its listener is gone", func() bool { return len(s.listeners(t, id)) == 0 })
}

const script = `#!/bin/sh
#SBATCH --requeue
#TUNE mode=apply
#TUNE knob cores values=1,2
#TUNE progress pattern='^epoch (?P<epoch>\d+)$'
#TUNE checkpoint signal=USR1 grace=20s done='^saved$'
n=${SLURM_RESTART_COUNT:-0}
echo "exporter $PITCHPIPE_EXPORTER, script $SLURM_TASK_PID is $$"
until [ -e begin$n ]; do sleep 0.05; done
for i in 1 2 3; do echo epoch $((3 * n + i)); sleep 0.1; done
srun --overlap --ntasks=1 echo one step
echo saved
echo saved
until [ -e go$n ]; do sleep 0.05; done
echo epoch $((3 * n + 4))
until [ -e end$n ]; do sleep 0.05; done
`

func TestTheListenerThatThePrologStartsReportsEachAttemptsEpochsAndSaves(t *testing.T) {
	t.Parallel()
	s := newStage(t, slurmcluster.Options{CPUs: 4})
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"where each attempt begins the output anew", nil},
		{"where each attempt appends to it", []string{"--open-mode=append"}},
		{"where errors go elsewhere", []string{"--error=%j.err", "--open-mode=append"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := s.sub(t, tt.name)
			id := s.submit(t, script, append([]string{"--chdir=" + dir}, tt.args...)...)
			s.awaitListening(t, id, filepath.Join(dir, id+".out"))
			s.let(t, filepath.Join(filepath.Base(dir), "begin0"))
			s.awaitReported(t, id, 1, reported{Epochs: []int{1, 2, 3}, Saves: 2})
			if n := len(s.listeners(t, id)); n != 1 {
				t.Errorf("%d listeners, want one and none for the step", n)
			}
			s.let(t, filepath.Join(filepath.Base(dir), "go0"))
			s.awaitReported(t, id, 1, reported{Epochs: []int{1, 2, 3, 4}, Saves: 2})
			// By SLURM_TASK_PID a listener that the script starts by itself finds it too.
			text, err := os.ReadFile(filepath.Join(dir, id+".out"))
			if found := regexp.MustCompile(`(?m)^exporter (\S+), script (\d+) is (\d+)$`).FindSubmatch(text); found == nil ||
				string(found[1]) != s.socket || !bytes.Equal(found[2], found[3]) {
				t.Errorf("the job did not see the exporter's socket, or not its own process (%v):\n%s", err, text)
			}
			s.requeue(t, id)
			s.awaitListening(t, id, filepath.Join(dir, id+".out"))
			s.let(t, filepath.Join(filepath.Base(dir), "begin1"))
			s.awaitReported(t, id, 2, reported{Epochs: []int{4, 5, 6}, Saves: 2})
			if n := len(s.listeners(t, id)); n != 1 {
				t.Errorf("%d listeners of the second attempt, want one", n)
			}
			s.let(t, filepath.Join(filepath.Base(dir), "go1"))
			s.let(t, filepath.Join(filepath.Base(dir), "end1"))
			s.ends(t, id)
			s.await(t, "the attempt has ended", func() bool { return s.reported(id, 2).Ended })
			if got := s.reported(id, 1); !got.Ended || fmt.Sprint(got.Epochs) != "[1 2 3 4]" {
				t.Errorf("the first attempt has reported %+v since", got)
			}
		})
	}
}

// Without cgroups the listener is not part of the job once the prolog has ended. It
// must not stay or be in the way.
func TestWhereSlurmMakesNoCgroupsTheListenerEndsWithTheScript(t *testing.T) {
	t.Parallel()
	s := newStage(t, slurmcluster.Options{CPUs: 4, Track: slurmcluster.TrackLinux})
	dir := s.sub(t, "linuxproc")
	id := s.submit(t, script, "--chdir="+dir)
	s.awaitListening(t, id, filepath.Join(dir, id+".out"))
	for _, name := range []string{"begin0", "go0", "end0"} {
		s.let(t, filepath.Join(filepath.Base(dir), name))
	}
	s.ends(t, id)
	if state := s.as(t, "root", "squeue", "-h", "-t", "all", "-j", id, "-o", "%T"); state != "COMPLETED" {
		t.Errorf("the job is %s", state)
	}

	// A job without a mark has none; one whose script names no line soon has none.
	plain, _ := s.sbatch(t, "#!/bin/sh\necho \"exporter <$PITCHPIPE_EXPORTER>\"\n", nil, "--wait")
	if text, err := os.ReadFile(s.home(plain + ".out")); string(text) != "exporter <>\n" {
		t.Errorf("a job without a mark wrote %q (%v)", text, err)
	}
	id = s.submit(t, "#!/bin/sh\nuntil [ -e enough ]; do sleep 0.05; done\n", "--chdir="+dir)
	s.await(t, "the job runs", func() bool { return s.as(t, "root", "squeue", "-h", "-t", "all", "-j", id, "-o", "%T") == "RUNNING" })
	s.await(t, "there is no listener for a job without a stanza", func() bool { return len(s.listeners(t, id)) == 0 })
	s.let(t, filepath.Join(filepath.Base(dir), "enough"))
	s.ends(t, id)
}

// requeue puts a running job back and makes it start again soon: Slurm by itself waits
// for two minutes.
func (s *stage) requeue(t *testing.T, id string) {
	t.Helper()
	s.as(t, slurmcluster.Alpha, "scontrol", "requeue", id)
	s.await(t, "the job waits", func() bool { return s.as(t, "root", "squeue", "-h", "-j", id, "-o", "%T") == "PENDING" })
	s.as(t, "root", "scontrol", "update", "JobId="+id, "StartTime=now+2")
}

// sub is a folder of Alpha's.
func (s *stage) sub(t *testing.T, name string) string {
	t.Helper()
	dir := s.home(strings.ReplaceAll(name, " ", "-"))
	s.as(t, slurmcluster.Alpha, "mkdir", "-p", dir)
	return dir
}
