package spec_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver/nomad/spec"
	"pitchpipe/test/nomadagent"
)

// chroot is what a shell script needs: a few programs, and their libraries.
func chroot(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, program := range []string{"sh", "env", "tr", "mkdir", "sleep", "true"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Skip(err)
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			t.Fatal(err)
		}
		out[path] = "/bin/" + program
		said, err := exec.CommandContext(t.Context(), "ldd", path).Output()
		if err != nil {
			t.Skipf("ldd %s: %v", path, err)
		}
		for _, lib := range regexp.MustCompile(`/\S+`).FindAllString(string(said), -1) {
			file, err := filepath.EvalSymlinks(lib)
			if err != nil {
				t.Fatal(err)
			}
			out[file] = lib
		}
	}
	return out
}

// needExec skips the test on a machine where the agent has no working driver exec.
func needExec(t *testing.T, c *api.Client) {
	t.Helper()
	nodes, _, err := c.Nodes().List(nil)
	if err != nil || len(nodes) == 0 {
		t.Fatalf("%d nodes (%v)", len(nodes), err)
	}
	node, _, err := c.Nodes().Info(nodes[0].ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if exec := node.Drivers["exec"]; exec == nil {
		t.Skip("the agent has no driver exec on this machine")
	} else if !exec.Healthy {
		t.Skipf("the agent's driver exec does not work on this machine: %s", exec.HealthDescription)
	}
}

// 2.2 under the driver exec: a task sees no other allocation, and the mark lies in a
// volume that it mounts. Without one the mark is not seen, and the user gets a warning.
func TestAnExecTaskIsDoneOnceByAMarkInItsVolume(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("the driver exec needs root")
	}
	dir, err := os.MkdirTemp("/var/tmp", "pitchpipe-marks-") //nolint:usetesting // the task's user writes to it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // a task of exec runs as nobody
		t.Fatal(err)
	}
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real, Chroot: chroot(t), Volumes: map[string]string{"marks": dir}})
	c := a.Client(t)
	needExec(t, c)
	for _, tt := range []struct {
		name, id string
		marks    string
		want     int
	}{
		{"in a volume it is seen", "seen", "/marks", 1},
		{"without one it is not, and that is said", "blind", "", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job := work(tt.id, "exec", "echo x >>/marks/work-"+tt.id)
			g := job.TaskGroups[0]
			g.Volumes = map[string]*api.VolumeRequest{"marks": {Name: "marks", Type: "host", Source: "marks"}}
			name, at := "marks", "/marks"
			g.Tasks[0].VolumeMounts = []*api.VolumeMount{{Volume: &name, Destination: &at}}
			if tt.marks != "" {
				g.Tasks[0].Env = map[string]string{"PITCHPIPE_MARKS": tt.marks}
			}
			warnings, err := spec.Once(job, "run-1")
			if err != nil || (len(warnings) > 0) != (tt.marks == "") {
				t.Fatalf("warnings %q (%v)", warnings, err)
			}
			register(t, c, job)
			allocs(t, c, tt.id, 1, complete)
			more := 60
			job.Priority = &more
			g.Tasks[0].SetMeta("changed", "yes")
			register(t, c, job)
			all := allocs(t, c, tt.id, 2, complete)
			if n := lines(t, filepath.Join(dir, "work-"+tt.id)); n != tt.want {
				t.Errorf("done %d times, want %d", n, tt.want)
			}
			for _, e := range all[1].TaskStates["t"].Events {
				if e.Type == api.TaskTerminated && e.Details["exit_code"] != "0" {
					t.Errorf("the second ended with %s", e.Details["exit_code"])
				}
			}
			marks, err := filepath.Glob(filepath.Join(dir, "pitchpipe-done-run-1-"+tt.id+"*"))
			if err != nil || (len(marks) > 0) != (tt.marks != "") {
				t.Errorf("marks %s (%v)", strings.Join(marks, ", "), err)
			}
		})
	}
}
