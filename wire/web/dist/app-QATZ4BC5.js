import{Wb as r}from"./chunk-IWJD4YVF.js";r();
