import{Bb as r}from"./chunk-HJZWLFE7.js";r();
