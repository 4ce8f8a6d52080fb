import{a as o,b as r}from"./chunk-B44K7S5N.js";import"./chunk-WEKBKF6O.js";import"./chunk-HYVOHVC7.js";import"./chunk-MMWV4INU.js";export{r as NotificationFields,o as Notifications};
