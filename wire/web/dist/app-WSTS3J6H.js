import{Cb as r}from"./chunk-244JP7VZ.js";r();
