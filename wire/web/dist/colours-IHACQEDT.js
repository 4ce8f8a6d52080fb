import{a as o,b as r}from"./chunk-5AOW4DX5.js";import"./chunk-HDWUO6MI.js";export{r as ColourCard,o as ColourChoice};
