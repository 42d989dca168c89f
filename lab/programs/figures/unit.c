#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
int f(int x) { return printf("%f", sqrt(x)); }
