package main
import ("fmt"; "sync")
func main() {
  var w sync.WaitGroup
  c := make(chan int)
  for g := 0; g < 8; g++ {
    w.Add(1)
    go func() { defer w.Done(); s := 0; for i := range c { for k := 0; k < 3000; k++ { s += i ^ k } }; fmt.Println(s) }()
  }
  for i := 0; i < 200000; i++ { c <- i }
  close(c)
  w.Wait()
}
