import{a as o,b as r}from"./chunk-3UIPGLDE.js";import"./chunk-IWJD4YVF.js";export{r as ColourCard,o as ColourChoice};
