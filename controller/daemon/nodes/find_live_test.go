package nodes_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	nomad "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/exporter/api/certs/certstest"
	"pitchpipe/test/nomadagent"
	"pitchpipe/test/sandbox"
)

// An exporter that Nomad runs and gives a port is found by the name of its node, asked,
// and found again when it is at another port.
func TestTheExporterOfANodeIsFoundByNomadsServices(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a client of Nomad needs root")
	}
	agent := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real})
	c := agent.Client(t)
	stubs, _, err := c.Nodes().List(nil)
	if err != nil || len(stubs) != 1 {
		t.Fatalf("nodes %v, %v", stubs, err)
	}
	name := stubs[0].Name

	dir := t.TempDir()
	exporter := filepath.Join(dir, "pitchpipe-exporter")
	if err := sandbox.Build(t.Context(), dir, sandbox.Exporter); err != nil {
		t.Fatal(err)
	}
	ca := certstest.New(t, "site")
	theirs := ca.Files(t, certstest.Leaf{Name: name, DNS: []string{name}, Server: true}, ca)
	own := ca.Files(t, certstest.Leaf{Name: "pitchpipe-controller", Client: true}, ca)

	finder, err := nodes.FindInNomad(c, "pitchpipe-exporter")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := finder.Find(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("before it runs: %v, %v", found, err)
	}
	e, err := nodes.New(nodes.Config{Find: finder, Cert: own.Cert, Key: own.Key, CA: own.CA})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Node(t.Context(), name); err == nil || !strings.Contains(err.Error(), "not registered") {
		t.Errorf("before it runs: %v", err)
	}

	job := systemJob(exporter, "--socket="+filepath.Join(dir, "s"), "--web.listen-address=", "--api.listen-address=127.0.0.1:${NOMAD_PORT_api}",
		"--api.cert="+theirs.Cert, "--api.key="+theirs.Key, "--api.client-ca="+theirs.CA, "--api.clients=pitchpipe-controller")
	var ports []string
	for round := range 2 {
		if _, _, err := c.Jobs().Register(job, nil); err != nil {
			t.Fatal(err)
		}
		var found map[string][]string
		until(t, "the exporter is found and answers", func() error {
			if found, err = finder.Find(t.Context()); err != nil {
				return err
			}
			if len(found[name]) != 1 || len(ports) == 1 && found[name][0] == ports[0] {
				return fmt.Errorf("found %v", found)
			}
			about, err := e.Window(t.Context(), name, "none", 0, 0)
			if err != nil && strings.Contains(err.Error(), "no job") { // it is the exporter who says so
				return nil
			}
			return fmt.Errorf("window %+v, %w", about.Job, err)
		})
		host, port, err := net.SplitHostPort(found[name][0])
		if err != nil || host != "127.0.0.1" {
			t.Errorf("round %d: at %v, %v", round, found, err)
		}
		ports = append(ports, found[name][0])
		t.Logf("the exporter of node %s is at port %s", name, port)
		// Another start gets another port.
		if _, _, err := c.Jobs().Deregister(*job.ID, true, nil); err != nil {
			t.Fatal(err)
		}
		until(t, "it is gone", func() error {
			if found, err = finder.Find(t.Context()); err == nil && len(found) > 0 {
				return fmt.Errorf("found %v", found)
			}
			return err
		})
	}
	if diff := cmp.Diff(ports[0], ports[1]); diff == "" {
		t.Errorf("both starts were at %s", ports[0])
	}
}

func systemJob(command string, args ...string) *nomad.Job {
	id, kind, mode := "pitchpipe-exporter", "system", "host"
	none, cpu, memory := 0, 100, 128
	return &nomad.Job{
		ID: &id, Name: &id, Type: &kind, Datacenters: []string{"*"},
		TaskGroups: []*nomad.TaskGroup{{
			Name: &id, RestartPolicy: &nomad.RestartPolicy{Attempts: &none},
			Networks: []*nomad.NetworkResource{{Mode: mode, DynamicPorts: []nomad.Port{{Label: "api"}}}},
			Services: []*nomad.Service{{Name: id, Provider: "nomad", PortLabel: "api"}},
			Tasks: []*nomad.Task{{
				Name: "exporter", Driver: "raw_exec", Config: map[string]any{"command": command, "args": args},
				Resources: &nomad.Resources{CPU: &cpu, MemoryMB: &memory},
			}},
		}},
	}
}

func until(t *testing.T, what string, is func() error) {
	t.Helper()
	sandbox.Await(t, 3*time.Minute, what, is)
}
