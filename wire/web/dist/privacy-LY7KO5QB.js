import{a as o}from"./chunk-ZMQQLW7U.js";import"./chunk-ULRCTWUT.js";import"./chunk-HIZALV3K.js";export{o as Privacy};
