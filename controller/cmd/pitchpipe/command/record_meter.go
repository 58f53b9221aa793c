package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"pitchpipe/exporter/api"
)

// meter starts its own exporter: it samples as often as asked, and believes the
// environment of this user's processes. nil: there is none.
func (o recording) meter(ctx context.Context) (*api.Client, func(), error) {
	nothing := func() {}
	program := o.exporter
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, nothing, fmt.Errorf("find this program: %w", err)
		}
		program = beside(self, "pitchpipe-exporter")
		if _, err := os.Stat(program); err != nil {
			program, _ = exec.LookPath("pitchpipe-exporter") // it is empty where there is none
		}
	}
	if program == "" || program == "none" {
		return nil, nothing, nil
	}
	dir, err := os.MkdirTemp("", "pitchpipe-record-*")
	if err != nil {
		return nil, nothing, fmt.Errorf("make a folder for the exporter: %w", err)
	}
	remove := func() { _ = os.RemoveAll(dir) }
	socket := filepath.Join(dir, "exporter.sock")
	client := api.NewClient(socket)
	exporter, err := launch(ctx, filepath.Join(dir, "log"), func() error { _, err := client.Node(ctx); return err }, program,
		"--socket", socket, "--web.listen-address=", "--log.level=error", "--sampling.interval="+o.interval.String(),
		"--sampling.discover=100ms", "--sampling.ring=100000", "--api.readers="+strconv.Itoa(os.Getuid()))
	if err != nil {
		remove()
		return nil, nothing, err
	}
	return client, func() { exporter.stop(); remove() }, nil
}
