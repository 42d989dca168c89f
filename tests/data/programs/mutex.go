// Two goroutines that rarely meet at a sync.Mutex. Usage: mutex SECONDS
package main

import (
	"os"
	"strconv"
	"sync"
	"time"
)

var (
	lock   sync.Mutex
	shared uint64
)

func work(until time.Time, done *sync.WaitGroup) {
	defer done.Done()
	sum := uint64(1)
	for time.Now().Before(until) {
		for i := 0; i < 20000; i++ {
			sum = sum*6364136223846793005 + 1442695040888963407
		}
		lock.Lock()
		shared += sum
		lock.Unlock()
	}
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var done sync.WaitGroup
	for i := 0; i < 2; i++ {
		done.Add(1)
		go work(until, &done)
	}
	done.Wait()
}
