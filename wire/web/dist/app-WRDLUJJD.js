import{Cb as r}from"./chunk-HDWUO6MI.js";r();
