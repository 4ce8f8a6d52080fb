import{a as o,b as r}from"./chunk-ZLTAAAPK.js";import"./chunk-HELCWPBU.js";import"./chunk-7V77K67M.js";import"./chunk-KYEDPC4O.js";export{r as NotificationFields,o as Notifications};
