package command

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/cmd/pitchpipe/demo"
	"pitchpipe/controller/daemon/api"
)

func (a *app) demo() *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use: "demo", Short: "Tune real jobs on this machine and compare the results",
		Long: "Starts an exporter and a controller in a temporary directory, runs tunable jobs whose users asked\n" +
			"for poor settings, and compares tuned with untuned. It takes a few minutes and two cores.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			if keep != "" {
				if keep, err = absolute(keep); err != nil {
					return err
				}
			}
			// With --json the object has the output to itself; people watch the errors' stream.
			people := &app{World: a.World}
			if a.json {
				people.Stdout = a.Stderr
			}
			start := time.Now()
			show := people.screen()
			report, err := demo.Run(cmd.Context(), demo.Config{
				Self: self, Exporter: beside(self, "pitchpipe-exporter"), Workload: beside(self, "workload"), Keep: keep,
				Say: func(text string) { people.printf("\n[%3.0f s] %s\n", time.Since(start).Seconds(), text); show.close() },
				Show: func(jobs []api.Job) {
					show.update(jobs[len(jobs)-1:])
					if jobs[len(jobs)-1].Ended {
						show.close()
					}
				},
				Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				return err
			}
			people.printf("\n")
			if err := report.Print(people.Stdout); err != nil {
				return err
			}
			if a.json {
				if err := a.printJSON(report); err != nil {
					return err
				}
			}
			if report.Lost+report.Duplicated > 0 {
				return errors.Join(errJobFailed, fmt.Errorf("lost %d, duplicated %d", report.Lost, report.Duplicated))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "keep state, logs and outputs in this directory")
	return cmd
}

// beside is a program in the same folder as this one.
func beside(self, name string) string { return filepath.Join(filepath.Dir(self), name) }
